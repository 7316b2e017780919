import type { Sink } from '../deliver/sink.js';
import type { ChunkWork } from '../deliver/work.js';
import {
  DEFAULT_CHUNKS,
  type ResolvedSnapshotOptions,
} from '../options/snapshot-options.js';
import type { Lsn } from '../model/lsn.js';
import { decodeProgress } from '../model/progress-token.js';
import {
  completeProgress,
  isPending,
  pendingProgress,
  type SnapshotProgress,
} from '../model/snapshot-progress.js';
import {
  furthestOf,
  watermarkOf,
  type CheckpointPosition,
} from '../server/checkpoint-reading.js';
import type { StreamPlan } from '../server/connect-chain.js';
import { readProgress } from '../server/progress-reading.js';
import { Backfill } from '../snapshot/incremental/backfill.js';
import { type SourceWait, WAIT_PATIENCE_MS } from '../telemetry/source-wait.js';
import type { ConnectionSubject } from './subject.js';

/** What copying beside the stream asks of its connection. */
export interface IncrementalPorts {
  deliver(work: ChunkWork): void;
  /** Asks the server where its stream is. */
  askPosition(): void;
  failed(error: unknown): void;
}

/**
 * What copies rows beside the stream of one connection; `null` when nothing ever does.
 *
 * @throws {HaltError} when what is to be copied cannot be read, or what is stored is no progress
 */
export async function openBackfill(
  subject: ConnectionSubject,
  { context, confirmedFlush }: StreamPlan,
  position: CheckpointPosition,
  ports: IncrementalPorts,
): Promise<Backfill | null> {
  const { options, capture, sink, pipeline, target, meter } = subject;
  const { snapshot, types } = options;
  if (snapshot === null || !storesProgress(sink)) return null;
  const stored = await readProgress(sink, context, position);
  const progress = progressFrom(stored, snapshot, position, confirmedFlush);
  // What somebody else has copied is not known.
  const known = stored !== null || isPending(progress);
  const { chunkRows, maxPendingChunks } =
    snapshot.mode === 'incremental' ? snapshot : DEFAULT_CHUNKS;
  return Backfill.prepare({
    pipeline,
    slotName: context.slotName,
    target,
    capture,
    types,
    chunkRows,
    maxPendingChunks,
    floor: progress.floor,
    progress: isPending(progress) ? null : progress,
    appliedThrough: watermarkOf(position),
    streamedFrom: confirmedFlush,
    fresh: position.commitLsn === null,
    meter,
    listed: (names) => subject.tables.copied(known ? names : null),
    waiting: (wait) => {
      if (wait === null || lasts(wait)) subject.waiting(wait);
    },
    ...ports,
  });
}

/** What is stored; where nothing is, that everything is to be copied, or that somebody else did so. */
function progressFrom(
  stored: string | null,
  { mode }: ResolvedSnapshotOptions,
  position: CheckpointPosition,
  boundary: Lsn,
): SnapshotProgress {
  if (stored !== null) return decodeProgress(stored);
  // A sink that stores progress by itself has stored none before its first call.
  return mode === 'incremental' && furthestOf(position) === null
    ? pendingProgress(boundary)
    : completeProgress(boundary, []);
}

/** Most transactions end soon. */
function lasts({ since }: SourceWait): boolean {
  return Date.now() - Date.parse(since) >= WAIT_PATIENCE_MS;
}

function storesProgress({ snapshotProgress, checkpoint }: Sink): boolean {
  return (
    snapshotProgress !== undefined ||
    (checkpoint.kind !== 'reader' &&
      checkpoint.keeper.storeProgress !== undefined)
  );
}
