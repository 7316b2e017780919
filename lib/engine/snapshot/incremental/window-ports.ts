import type { Lsn } from '../../model/lsn.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { Chunk, ReadyChunk } from './chunk.js';

/** How much is held for chunks. */
export interface WindowLimits {
  /** Chunks that wait for the stream or for the sink. */
  readonly pendingChunks: number;
  /** Bytes of their rows. */
  readonly pendingBytes: number;
  /** Bytes of what is kept of rows that the stream has changed. */
  readonly changedBytes: number;
  /** Bytes of the keys of rows that lack columns, for each table. */
  readonly lackingBytes: number;
}

/** Limits beside the number of chunks. */
export const WINDOW_BYTES = {
  pendingBytes: 16 * 1024 * 1024,
  changedBytes: 16 * 1024 * 1024,
  lackingBytes: 1024 * 1024,
} as const satisfies Partial<WindowLimits>;

/**
 * Why chunks were thrown away:
 *
 * - `contended`: a table whose rows cannot be told apart was changed
 * - `identity`: the stream tells the rows of the table apart in another way
 * - `memory`: too many rows were changed while chunks waited
 * - `lacking`: too many rows lack columns: the table has to be read from its beginning
 */
export type DiscardReason = 'contended' | 'identity' | 'memory' | 'lacking';

/** What a window asks of whoever reads chunks and hands them over. All are called in the order of the stream. */
export interface WindowPorts {
  /** What is left of a chunk goes to the sink, behind everything that the stream has brought until now. */
  ready(chunk: ReadyChunk): void;
  /** A chunk waits for the stream: asks the server for its position. */
  askPosition(): void;
  /** These chunks do not come, nor one that is being read: reading goes on behind the last that was ready. */
  discarded(chunks: readonly Chunk[], reason: DiscardReason): void;
  /**
   * Rows of the table came to lack columns in the transaction that was received: which they are has to be durable before the sink has applied
   * it.
   */
  lackingChanged(table: PublishedTable): void;
  /**
   * A transaction is handed over before its end was received, so that {@link WindowPorts.lackingChanged} may come too late. A progress that is
   * durable before it has to name its position: when the checkpoint has reached that position after a crash, and no later progress is stored,
   * tables of which a part was copied are read from their beginning.
   */
  lackingUncertain(commitLsn: Lsn): void;
}
