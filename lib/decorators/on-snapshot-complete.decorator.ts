import type { SnapshotCheckpoint } from '../engine/model/snapshot.js';
import { markMember } from '../sinks/sink.metadata.js';
import type { HandlerDecorator } from './handler-decorator.js';

/**
 * Makes a method be told that an initial snapshot is done, before anything is streamed: `(checkpoint) => Promise<void>`. A sink whose
 * `@Checkpoint()` is a method needs it in the mode `initial`, and stores `checkpoint.commitLsn` in it, to be read by that method from
 * then on: all that commits up to there is in the snapshot. Beside a `CheckpointTable` it is called too, and need not store anything. It is refused
 * in the mode `incremental`, and where the library keeps the checkpoint.
 *
 * A promise that rejects halts the pipeline with `snapshot_failed`, and the next start copies everything anew.
 *
 * @example
 * ```ts
 * @OnSnapshotComplete()
 * async copied({ commitLsn }: SnapshotCheckpoint): Promise<void> {
 *   await this.db.query('UPDATE position SET lsn = $1', [formatLsn(commitLsn)]);
 * }
 * ```
 */
export function OnSnapshotComplete(): HandlerDecorator<
  [checkpoint: SnapshotCheckpoint]
> {
  return (prototype, property) => {
    markMember('snapshotComplete', prototype, { property });
  };
}
