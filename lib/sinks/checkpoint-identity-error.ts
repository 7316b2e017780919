/**
 * The checkpoint row of a slot belongs to another PostgreSQL server than the one that is connected. Positions of two servers
 * cannot be compared, so nothing is applied and nothing is skipped.
 */
export class CheckpointIdentityError extends Error {
  override readonly name = 'CheckpointIdentityError';

  constructor(readonly slotName: string) {
    super(
      `The checkpoint row of slot ${slotName} belongs to another PostgreSQL server. Point the connection at the server it belongs to; or give one of two pipelines that share this table another slotName; or remove the row to start anew.`,
    );
  }
}
