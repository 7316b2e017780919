import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionFault } from '../../model/connection-fault.js';
import type { Lsn } from '../../model/lsn.js';
import { sqlstateOf } from '../../server/error-classes.js';
import type {
  KeyColumn,
  PublishedTable,
} from '../../server/published-table.js';
import type { SessionTarget } from '../../server/session.js';
import { CopySession } from '../copy-session.js';
import { PAGE_BYTES, PAGE_ROWS, type Page } from '../raw-row.js';
import type { Chunk } from './chunk.js';
import {
  type ChunkQuery,
  chunkQuery,
  type ChunkRange,
  lockSql,
} from './chunk-query.js';
import { FLUSHED, POSITION, positionOf } from './log-positions.js';
import { tableShapeSql } from './table-shape.js';
import { parseSnapshot } from './snapshot-text.js';
import type { Blocker } from '../../telemetry/source-wait.js';
import { readHolder } from './transactions.js';
import type { VisibleTransactions } from './visibility.js';

/** A table, and its shape when its columns were read. */
export interface ReadableTable {
  readonly table: PublishedTable;
  /** See {@link tableShapeSql}. */
  readonly shape: string;
}

/** A chunk, and whether it holds every row that was asked for. */
export interface ReadChunk {
  readonly chunk: Chunk;
  readonly whole: boolean;
}

/** What is known of a chunk before its rows are read. */
type Begun = Pick<Chunk, 'visible' | 'readAt' | 'flushed'>;

/** Chunks are read by an index where there is one: a plan that reads or sorts a large table would do so for each of them. */
export const PLANNING =
  "select pg_catalog.set_config(s, 'off', false) from pg_catalog.unnest(array['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'jit']) s" +
  " union all select pg_catalog.set_config('max_parallel_workers_per_gather', '0', false)";

const SNAPSHOT =
  'pg_catalog.pg_current_snapshot() as snapshot, pg_catalog.pg_is_in_recovery() as in_recovery';
/** How often it is asked whether the log is flushed. */
const FLUSH_POLL_MS = 50;

/** What the server answers when a name is not there any more. */
const GONE = new Set([
  '3F000', // invalid_schema_name
  '42P01', // undefined_table
  '42703', // undefined_column
  '42704', // undefined_object
  '42883', // undefined_function
]);

/** Reads chunks of tables, each in a transaction of its own, over one session at a time. */
export class ChunkReader {
  #session: CopySession | null = null;
  /** Whether the server was in recovery when it was asked last: a snapshot that was taken later may have been taken in it. */
  #wasInRecovery = false;
  /** The snapshot of the last chunk of the session, and a position that is not before any commit that it could see. */
  #last: { readonly snapshot: string; readonly readAt: Lsn } | null = null;

  constructor(private readonly target: SessionTarget) {}

  /** What a snapshot that is taken now sees, and up to where the log is flushed. */
  async poll(): Promise<Pick<Chunk, 'visible' | 'flushed'>> {
    const session = await this.#opened();
    const [row] = await session.commands.query(
      `select ${SNAPSHOT}, ${FLUSHED}`,
    );
    return {
      visible: this.#visible(row?.['snapshot'], row?.['in_recovery']),
      flushed: positionOf(row?.['flushed']),
    };
  }

  /**
   * Reads rows behind a row, by the order key. It ends early with the row by which it holds {@link PAGE_BYTES}.
   *
   * @throws {ConnectionFault} when the table is not as it was
   */
  async behind(
    readable: ReadableTable,
    order: readonly KeyColumn[],
    after: readonly string[] | null,
    limit: number,
  ): Promise<ReadChunk> {
    return this.#chunk(readable, { kind: 'ordered', order, after, limit });
  }

  /** Reads the rows that have these keys, as {@link behind} does. */
  async withKeys(
    readable: ReadableTable,
    columns: readonly KeyColumn[],
    keys: readonly (readonly string[])[],
  ): Promise<ReadChunk> {
    const { chunk, whole } = await this.#chunk(readable, {
      kind: 'keys',
      columns,
      keys,
    });
    const places = columns.map(({ name }) =>
      readable.table.columns.findIndex((column) => column.name === name),
    );
    const found = Array.from(chunk.rows, (row) =>
      places.map((place) => row[place] ?? null),
    );
    return { chunk: { ...chunk, keys: whole ? keys : found }, whole };
  }

  /** Asks who has opened a transaction that is in progress. */
  async holder(xid: bigint): Promise<Blocker> {
    const session = await this.#opened();
    return readHolder(session.commands, xid);
  }

  /**
   * Reads a whole table in one transaction, in chunks with one snapshot; at least one, that may be empty. The transaction lasts until the last
   * was taken.
   */
  async *whole(readable: ReadableTable): AsyncGenerator<ReadChunk, void> {
    let last: Chunk | null = null;
    for await (const chunk of this.#read(
      readable,
      { kind: 'whole' },
      PAGE_ROWS,
    )) {
      if (last !== null) yield { chunk: last, whole: false };
      last = chunk;
    }
    if (last !== null) yield { chunk: last, whole: true };
  }

  /** Ends the session, within a second. Never rejects. */
  async close(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    await session?.close();
  }

  async #chunk(
    readable: ReadableTable,
    range: Exclude<ChunkRange, { kind: 'whole' }>,
  ): Promise<ReadChunk> {
    const most = range.kind === 'ordered' ? range.limit : range.keys.length;
    const pages = this.#read(readable, range, most);
    const first = await pages.next();
    if (first.done === true) throw new Error('a reading gave no chunk');
    const chunk = first.value;
    // What the server has sent beyond is dropped with the session.
    if (chunk.bytes >= PAGE_BYTES && chunk.rows.length < most) {
      await pages.return();
      return { chunk, whole: false };
    }
    const end = await pages.next();
    if (end.done !== true) await pages.return();
    return { chunk, whole: end.done === true };
  }

  /** One transaction. Whoever does not read it to its end ends the session. */
  async *#read(
    readable: ReadableTable,
    range: ChunkRange,
    pageRows: number,
  ): AsyncGenerator<Chunk, void> {
    const { table } = readable;
    const session = await this.#opened();
    let done = false;
    try {
      const { sql, settings } = chunkQuery(table, range);
      const begun = await this.#begin(session, readable, settings);
      // While its rows are read nobody can ask.
      const flushed =
        range.kind === 'whole'
          ? await this.#flushed(session, begun)
          : begun.flushed;
      const chunkOf = ({ rows, bytes }: Page): Chunk => ({
        table,
        rows,
        bytes,
        ...begun,
        flushed,
      });
      const pages = session.copy(`${sql}; COMMIT`, {
        rows: pageRows,
        bytes: PAGE_BYTES,
      });
      let any = false;
      for await (const page of pages) {
        any = true;
        yield chunkOf(page);
      }
      done = true;
      if (!any) yield chunkOf({ rows: [], bytes: 0 });
    } catch (error) {
      throw explained(error, table);
    } finally {
      if (!done) this.#drop(session);
    }
  }

  /** Opens a transaction that sees the table as it is from now on. The lock comes before the snapshot, and may be waited for. */
  async #begin(
    { commands }: CopySession,
    { table, shape }: ReadableTable,
    settings: ChunkQuery['settings'],
  ): Promise<Begun> {
    await commands.queryPatiently(
      `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${lockSql(table)}`,
    );
    const names = [...settings.keys()].map(
      (name, place) =>
        `, pg_catalog.set_config('${name}', $${place + 2}, true)`,
    );
    const [row] = await commands.query(
      `select ${SNAPSHOT}, ${POSITION}, ${FLUSHED}, ${tableShapeSql('$1')} as shape${names.join('')}`,
      [table.oid, ...settings.values()],
    );
    if (row?.['shape'] !== shape) throw changed(table);
    const snapshot = row['snapshot'] ?? '';
    const visible = this.#visible(snapshot, row['in_recovery']);
    // What open transactions have written since, or reading itself, may stay unflushed for long. It need not be waited for.
    const readAt =
      this.#last?.snapshot === snapshot
        ? this.#last.readAt
        : positionOf(row['position']);
    // In recovery, equal snapshots may see different transactions.
    this.#last = visible.inRecovery ? null : { snapshot, readAt };
    return { visible, readAt, flushed: positionOf(row['flushed']) };
  }

  /** Waits until the log is flushed up to where a transaction began. */
  async #flushed(
    { commands }: CopySession,
    { readAt, flushed }: Begun,
  ): Promise<Lsn> {
    let position = flushed;
    while (position < readAt) {
      await sleep(FLUSH_POLL_MS, undefined, { signal: this.target.signal });
      const [row] = await commands.query(`select ${FLUSHED}`);
      position = positionOf(row?.['flushed']);
    }
    return position;
  }

  #visible(
    snapshot: string | null | undefined,
    inRecovery: string | null | undefined,
  ): VisibleTransactions {
    const visible = parseSnapshot(snapshot ?? '', this.#wasInRecovery);
    if (visible === null)
      throw new ConnectionFault('the server does not tell its snapshot');
    this.#wasInRecovery = inRecovery === 't';
    return visible;
  }

  async #opened(): Promise<CopySession> {
    if (this.#session !== null) return this.#session;
    const session = await CopySession.open(this.target);
    try {
      await session.commands.query(PLANNING);
      const [row] = await session.commands.query(
        'select pg_catalog.pg_is_in_recovery() as in_recovery',
      );
      this.#wasInRecovery = row?.['in_recovery'] === 't';
    } catch (error) {
      session.destroy();
      throw error;
    }
    this.#session = session;
    this.#last = null;
    return session;
  }

  #drop(session: CopySession): void {
    session.destroy();
    if (this.#session === session) this.#session = null;
  }
}

/** Names that are gone are no fault: what is there now is read from the catalog by the next connection. */
function explained(error: unknown, table: PublishedTable): unknown {
  const code = sqlstateOf(error);
  return code !== null && GONE.has(code) ? changed(table) : error;
}

function changed({ quotedName }: PublishedTable): ConnectionFault {
  return new ConnectionFault(
    `the table ${quotedName} was changed or dropped while it was copied`,
  );
}
