import type { ChunkWork } from '../deliver/work.js';
import type { SnapshotProgress } from '../model/snapshot-progress.js';
import { DEFAULT_CHUNKS } from '../options/snapshot-options.js';
import type { StreamPlan } from '../server/connect-chain.js';
import { Backfill } from '../snapshot/incremental/backfill.js';
import type { ConnectionSubject } from './subject.js';

/** What copying beside the stream asks of its connection. */
export interface IncrementalPorts {
  deliver(work: ChunkWork): void;
  /** Asks the server where its stream is. */
  askPosition(): void;
  failed(error: unknown): void;
}

/**
 * Copies rows beside the stream of one connection.
 *
 * @param progress - how far that is; `null` when nothing is known to be copied
 */
export function backfillOf(
  subject: ConnectionSubject,
  { context, confirmedFlush }: StreamPlan,
  progress: SnapshotProgress | null,
  ports: IncrementalPorts,
): Backfill | null {
  const { snapshot, publications, types } = subject.options;
  if (snapshot === null) return null;
  const { chunkRows, maxPendingChunks } =
    snapshot.mode === 'incremental' ? snapshot : DEFAULT_CHUNKS;
  return new Backfill({
    pipeline: subject.pipeline,
    slotName: context.slotName,
    target: subject.target,
    publications,
    types,
    chunkRows,
    maxPendingChunks,
    floor: confirmedFlush,
    progress,
    meter: subject.meter,
    ...ports,
  });
}
