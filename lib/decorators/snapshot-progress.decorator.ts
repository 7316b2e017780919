import type { SnapshotProgressReader } from '../engine/model/checkpoint.js';
import { markMember } from '../sinks/sink.metadata.js';

/**
 * Makes a method read how far an incremental snapshot is: `(context) => Promise<string | null>`. It answers the
 * {@link SnapshotContext.progress} that the method with `@OnSnapshot()` stored last, unchanged, or `null` when there is none yet. A sink needs it in
 * the mode `incremental` when it stores that by itself; a `CheckpointTable` reads it without. It is refused in the mode `initial`, and where the library
 * keeps the checkpoint.
 *
 * It is asked on every connect. An answer that is neither a text nor `null` halts with `snapshot_progress_invalid`. A promise that rejects is
 * a read that failed, and repeated like a lost connection.
 *
 * @example
 * ```ts
 * @SnapshotProgress()
 * async progress({ slotName }: CheckpointContext): Promise<string | null> {
 *   const [row] = await this.db.query('SELECT progress FROM copies WHERE slot = $1', [slotName]);
 *   return row?.progress ?? null;
 * }
 * ```
 */
export function SnapshotProgress(): <F extends SnapshotProgressReader>(
  prototype: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
) => void {
  return (prototype, property) => {
    markMember('snapshotProgress', prototype, { property });
  };
}
