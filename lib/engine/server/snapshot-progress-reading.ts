import type { CheckpointContext } from '../model/checkpoint.js';
import { HaltError } from '../model/halt.js';
import {
  decodeProgress,
  type SnapshotProgress,
} from '../model/snapshot-progress.js';
import type { ConsultedSink } from './chain-subject.js';
import { available, type CheckpointPosition } from './checkpoint-reading.js';

/**
 * Reads how far a snapshot is: from the sink's own method, or what came with the checkpoint. `null` when none was begun.
 *
 * @throws {HaltError} `snapshot_progress_invalid`
 * @throws {ConnectionFault} when reading fails
 */
export async function readSnapshotProgress(
  { snapshotProgress }: ConsultedSink,
  context: CheckpointContext,
  position: CheckpointPosition,
): Promise<SnapshotProgress | null> {
  const text: unknown =
    snapshotProgress === undefined
      ? (position.progress ?? null)
      : await available(
          Promise.resolve().then(() => snapshotProgress(context)),
        );
  if (text === null) return null;
  if (typeof text === 'string') return decodeProgress(text);
  throw new HaltError('snapshot_progress_invalid', {
    detail: `the @SnapshotProgress() method returned ${typeof text}`,
  });
}
