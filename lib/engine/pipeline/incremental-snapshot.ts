import type { Sink } from '../deliver/sink.js';
import type { ChunkWork } from '../deliver/work.js';
import { DEFAULT_CHUNKS } from '../options/snapshot-options.js';
import {
  decodeProgress,
  pendingProgress,
  type SnapshotProgress,
} from '../model/snapshot-progress.js';
import {
  furthestOf,
  type CheckpointPosition,
} from '../server/checkpoint-reading.js';
import type { StreamPlan } from '../server/connect-chain.js';
import { readProgress } from '../server/progress-reading.js';
import { Backfill } from '../snapshot/incremental/backfill.js';
import type { ConnectionSubject } from './subject.js';

/** What copying beside the stream asks of its connection. */
export interface IncrementalPorts {
  deliver(work: ChunkWork): void;
  /** Asks the server where its stream is. */
  askPosition(): void;
  failed(error: unknown): void;
}

/** What copies rows beside the stream of one connection; `null` when nothing ever does. */
export async function openBackfill(
  subject: ConnectionSubject,
  { context, confirmedFlush }: StreamPlan,
  position: CheckpointPosition,
  ports: IncrementalPorts,
): Promise<Backfill | null> {
  const { options, sink, pipeline, target, meter } = subject;
  const { snapshot, publications, types } = options;
  if (snapshot === null || !storesProgress(sink)) return null;
  const stored = await readProgress(sink, context, position);
  // Nothing is stored before the first call of the sink where the sink alone stores.
  const isNew =
    snapshot.mode === 'incremental' && furthestOf(position) === null;
  const fresh = isNew ? pendingProgress(confirmedFlush) : null;
  const progress = stored === null ? fresh : decodeProgress(stored);
  subject.tables.copied(progress === null ? null : namesIn(progress));
  const { chunkRows, maxPendingChunks } =
    snapshot.mode === 'incremental' ? snapshot : DEFAULT_CHUNKS;
  return new Backfill({
    pipeline,
    slotName: context.slotName,
    target,
    publications,
    types,
    chunkRows,
    maxPendingChunks,
    floor: confirmedFlush,
    progress,
    meter,
    ...ports,
  });
}

function storesProgress({ snapshotProgress, checkpoint }: Sink): boolean {
  return (
    snapshotProgress !== undefined ||
    (checkpoint.kind !== 'reader' &&
      checkpoint.keeper.storeProgress !== undefined)
  );
}

/** Of the tables that are copied, or are to be. */
function namesIn({ tables }: SnapshotProgress): readonly string[] {
  return tables.map(({ schema, table }) => `${schema}.${table}`);
}
