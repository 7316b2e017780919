import type { CheckpointContext, SinkCheckpoint } from '../model/checkpoint.js';
import { HaltError } from '../model/halt.js';
import { available, type CheckpointPosition } from './checkpoint-reading.js';

/** Where a sink keeps the progress of a snapshot: as it says itself, or with its checkpoint. */
export interface ProgressSource {
  readonly checkpoint: SinkCheckpoint;
  readonly snapshotProgress?: (context: CheckpointContext) => unknown;
}

/**
 * Makes room for progress where the checkpoint keeps it.
 *
 * @throws {HaltError} when a person has to
 * @throws {ConnectionFault} when it fails and may be tried again
 */
export async function prepareProgress({
  checkpoint,
  snapshotProgress,
}: ProgressSource): Promise<void> {
  if (snapshotProgress !== undefined || checkpoint.kind === 'reader') return;
  await available(checkpoint.keeper.prepareProgress?.() ?? Promise.resolve());
}

/**
 * What was stored last as the progress of a snapshot, unchecked; `null` for nothing yet.
 *
 * @param position - as it was just read
 * @throws {HaltError} `snapshot_progress_invalid` when the sink answers anything but a text or null
 * @throws {ConnectionFault} when reading fails
 */
export async function readProgress(
  sink: ProgressSource,
  context: CheckpointContext,
  position: CheckpointPosition,
): Promise<string | null> {
  if (sink.snapshotProgress === undefined) return position.progress ?? null;
  const answer = await available(
    Promise.resolve().then(() => sink.snapshotProgress?.(context)),
    'the progress of the snapshot',
  );
  if (answer === null || typeof answer === 'string') return answer;
  throw new HaltError('snapshot_progress_invalid', {
    detail: `the @SnapshotProgress() method returned ${typeof answer}`,
  });
}
