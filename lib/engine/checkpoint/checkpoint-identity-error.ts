/**
 * The checkpoint row of a slot belongs to another PostgreSQL server than the one that is connected, or was written since a standby
 * of this one was promoted. Positions of two servers, and of two histories, cannot be compared, so nothing is applied and
 * nothing is skipped.
 */
export class CheckpointIdentityError extends Error {
  override readonly name = 'CheckpointIdentityError';

  constructor(readonly slotName: string) {
    super(
      `The checkpoint row of slot ${slotName} belongs to another PostgreSQL server, or to a later timeline of this one. Point the connection at the server it belongs to; or give one of two pipelines that share this table another slotName; or remove the row to start anew.`,
    );
  }
}
