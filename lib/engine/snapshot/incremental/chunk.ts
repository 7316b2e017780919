import type { AnySnapshotRow } from '../../model/snapshot.js';
import type { Lsn } from '../../model/lsn.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { RawRow, RawRows } from '../raw-row.js';
import type { VisibleTransactions } from './visibility.js';

/** Rows of one table that were read in one transaction of the source. */
export interface Chunk {
  readonly table: PublishedTable;
  readonly rows: RawRows;
  /** Of their text. */
  readonly bytes: number;
  /** What the transaction that read them could see. */
  readonly visible: VisibleTransactions;
  /**
   * For rows that were searched because the sink lacks columns of them: the values of the replica identity that were searched, in the order of
   * the table. Of such rows the sink is given what it lacks.
   */
  readonly keys?: readonly RawRow[];
  /** A position of the source that is not before any commit that it could see. */
  readonly readAt: Lsn;
  /** Up to here the log was flushed when it was read; the stream has what is before. */
  readonly flushed: Lsn;
}

/** What is left of a chunk for the sink, beside a stream that has reached {@link Chunk.readAt}. */
export interface ReadyChunk {
  readonly chunk: Chunk;
  /** Rows that the stream has not brought. */
  readonly rows: RawRows;
  /** Rows that it has brought without their large columns: these, and the replica identity, are to be filled in. */
  readonly fills: readonly Fill[];
}

/** A row of which the sink lacks columns. */
export interface Fill {
  readonly row: RawRow;
  /** Places of these columns in {@link PublishedTable.columns}. */
  readonly columns: readonly number[];
}

/** Makes what the sink receives of the text of the server. */
export interface RowMaker {
  whole(row: RawRow): AnySnapshotRow;
  fill(fill: Fill): AnySnapshotRow;
}
