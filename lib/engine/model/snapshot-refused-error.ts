/**
 * What {@link Pipeline.snapshot} was asked for cannot be copied, such as a table that is not published or may not be read. Nothing was touched,
 * and the stream goes on. Its message says what to do.
 */
export class SnapshotRefusedError extends Error {
  override readonly name = 'SnapshotRefusedError';
}
