/**
 * Another process has written the checkpoint row of a slot since this one read it, so rows of a snapshot that this one has read must not be
 * written any more. Let it leave the handler, so that its database transaction is rolled back: the pipeline then connects and reads the checkpoint
 * anew.
 */
export class CheckpointMovedError extends Error {
  override readonly name = 'CheckpointMovedError';

  constructor(readonly slotName: string) {
    super(
      `Another process has written the checkpoint of slot ${slotName} since this one read it. Roll back the rows of the snapshot, and let this error leave the handler: the pipeline then reads the checkpoint anew.`,
    );
  }
}
