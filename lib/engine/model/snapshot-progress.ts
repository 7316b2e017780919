import { createHash } from 'node:crypto';
import { HaltError } from './halt.js';
import { formatLsn, type Lsn, parseLsn } from './lsn.js';
import { isName } from './names.js';

/** How far an incremental snapshot is. Names in it are never written into SQL: they are compared with those of the catalog. */
export interface SnapshotProgress {
  /** Where the slot began when the snapshot did. */
  readonly floor: Lsn;
  readonly complete: boolean;
  /**
   * Commit position of a transaction that was handed over before it was known which rows it left without some of their columns; `null` when
   * there was none since a later progress.
   */
  readonly uncertain: Lsn | null;
  /** Every table that is copied, each once. */
  readonly tables: readonly TableProgress[];
}

/** A table of a snapshot, and how far its copy is. */
export type TableProgress = ProgressTable & TableState;

/** A table, and its OID: another table may have the name later. */
export interface ProgressTable extends TableName {
  readonly oid: number;
}

/** Names a table as the catalog does; two names, since either may hold a dot. */
export interface TableName {
  readonly schema: string;
  readonly table: string;
}

/**
 * - `uncleared`: the sink was not told yet to remove what it has of it
 * - `waiting`: it was, and nothing was copied since
 * - `copying`: a part of a table without an order key was copied
 * - `reading`: it was copied up to a row
 * - `done`: nothing is left to copy
 */
export type TableState =
  | { readonly state: 'uncleared' | 'waiting' | 'done' }
  | CopyingState
  | ReadingState;

interface CopyingState {
  readonly state: 'copying';
  /** Pages that were handed over: otherwise the progress of one would be that of the next, and not tell which of them the sink has. */
  readonly pages: number;
}

interface ReadingState {
  readonly state: 'reading';
  /** The row that was read last; `null` when only rows are left that lack columns. */
  readonly bound: Bound | null;
  /** Rows of the sink that lack columns and that reading in order does not come to; `null` when there are none. */
  readonly lacking: LackingRows | null;
}

/** A row in the order in which a table is read. */
export interface Bound {
  /** By which columns; two texts for each: its name, and how its type is ordered. */
  readonly order: readonly (readonly [name: string, ordering: string])[];
  /** Their values in the row, as the server's text. */
  readonly values: readonly string[];
}

/** The values of some columns of several rows, as the server's text. */
export interface LackingRows {
  readonly columns: readonly string[];
  readonly keys: readonly (readonly string[])[];
}

const PREFIX = 'nestjs-replicant-snapshot:1:';
/** Tens of thousands of tables. What is longer was not written here. */
const LONGEST_TOKEN = 16 * 1024 * 1024;
/** Columns of an index, at most. */
const MOST_COLUMNS = 32;
const TOKEN = /^([\w-]{43}):([\w-]*)$/;

const LETTERS = {
  uncleared: 'u',
  waiting: 'w',
  copying: 'c',
  reading: 'r',
  done: 'd',
} as const satisfies Record<TableState['state'], string>;

/** Writes a progress as text, in characters that every encoding of a database has. */
export function encodeProgress(progress: SnapshotProgress): string {
  const content = Buffer.from(
    JSON.stringify([
      formatLsn(progress.floor),
      progress.complete,
      progress.uncertain === null ? null : formatLsn(progress.uncertain),
      progress.tables.map(tableContent),
    ]),
  ).toString('base64url');
  return `${PREFIX}${checksum(content)}:${content}`;
}

/**
 * Reads what {@link encodeProgress} wrote, and nothing else.
 *
 * @throws {HaltError} `snapshot_progress_invalid`
 */
export function decodeProgress(token: string): SnapshotProgress {
  if (!token.startsWith('nestjs-replicant-snapshot:'))
    throw invalid('it does not begin as a progress does');
  if (!token.startsWith(PREFIX))
    throw invalid('another version of the library wrote it');
  if (token.length > LONGEST_TOKEN) throw invalid('it is too long');
  const match = TOKEN.exec(token.slice(PREFIX.length));
  if (match === null || match[1] !== checksum(match[2] ?? ''))
    throw invalid('it is cut off or changed');
  const progress = readProgress(parse(match[2] ?? ''));
  // One text for one progress: nothing was overlooked.
  if (progress === null || encodeProgress(progress) !== token)
    throw invalid('its content is not what a progress holds');
  return progress;
}

/** That everything is to be copied, and it is not known yet what that is. */
export function pendingProgress(floor: Lsn): SnapshotProgress {
  return { floor, complete: false, uncertain: null, tables: [] };
}

/** Whether it says no more than {@link pendingProgress}. */
export function isPending({ complete, tables }: SnapshotProgress): boolean {
  return !complete && tables.length === 0;
}

/** That these tables are copied, and nothing is left. */
export function completeProgress(
  floor: Lsn,
  tables: readonly ProgressTable[],
): SnapshotProgress {
  return {
    floor,
    complete: true,
    uncertain: null,
    tables: tables.map(({ schema, table, oid }) => ({
      schema,
      table,
      oid,
      state: 'done',
    })),
  };
}

/** Whether the sink was told anything of the snapshot. */
export function isBegun({ complete, tables }: SnapshotProgress): boolean {
  return complete || tables.some(({ state }) => state !== 'uncleared');
}

function tableContent(entry: TableProgress): readonly unknown[] {
  const head = [entry.schema, entry.table, LETTERS[entry.state], entry.oid];
  if (entry.state === 'copying') return [...head, entry.pages];
  if (entry.state !== 'reading') return head;
  const { bound, lacking } = entry;
  return [
    ...head,
    bound === null ? null : [bound.order, bound.values],
    lacking === null ? null : [lacking.columns, lacking.keys],
  ];
}

function checksum(content: string): string {
  return createHash('sha256').update(content).digest('base64url');
}

function parse(content: string): unknown {
  try {
    const parsed: unknown = JSON.parse(
      Buffer.from(content, 'base64url').toString(),
    );
    return parsed;
  } catch {
    return null;
  }
}

function readProgress(content: unknown): SnapshotProgress | null {
  const [floorText, complete, uncertainText, entries] = fieldsOf(content);
  const floor = readPosition(floorText);
  const uncertain = uncertainText === null ? null : readPosition(uncertainText);
  const tables = listOf(entries, readTable);
  if (floor === null || typeof complete !== 'boolean' || tables === null)
    return null;
  const names = new Set(tables.map((name) => tableKey(name)));
  if (names.size < tables.length) return null;
  return { floor, complete, uncertain, tables };
}

function readPosition(content: unknown): Lsn | null {
  return typeof content === 'string' ? parseLsn(content) : null;
}

function readTable(content: unknown): TableProgress | null {
  const fields = fieldsOf(content);
  const schema = readName(fields[0]);
  const table = readName(fields[1]);
  const oid = readOid(fields[3]);
  const state = readState([...fields.slice(0, 3), ...fields.slice(4)]);
  if (schema === null || table === null || oid === null || state === null)
    return null;
  return { schema, table, oid, ...state };
}

function readOid(content: unknown): number | null {
  return typeof content === 'number' &&
    Number.isInteger(content) &&
    content > 0 &&
    content < 2 ** 32
    ? content
    : null;
}

function readState(fields: readonly unknown[]): TableState | null {
  switch (fields[2]) {
    case LETTERS.uncleared:
      return { state: 'uncleared' };
    case LETTERS.waiting:
      return { state: 'waiting' };
    case LETTERS.copying:
      return readCopying(fields[3]);
    case LETTERS.done:
      return { state: 'done' };
    case LETTERS.reading: {
      const bound = readBound(fields[3]);
      const lacking = readLacking(fields[4]);
      if (bound === undefined || lacking === undefined) return null;
      return bound === null && lacking === null
        ? null
        : { state: 'reading', bound, lacking };
    }
    default:
      return null;
  }
}

function readCopying(pages: unknown): TableState | null {
  return typeof pages === 'number' && Number.isSafeInteger(pages) && pages > 0
    ? { state: 'copying', pages }
    : null;
}

/** `undefined` for what is none. */
function readBound(content: unknown): Bound | null | undefined {
  if (content === null) return null;
  const [orderContent, valuesContent] = fieldsOf(content);
  const order = listOf(orderContent, readOrder);
  const columns = readColumns(order?.map(([name]) => name));
  const values = listOf(valuesContent, readValue);
  return order === null || columns === null || values?.length !== columns.length
    ? undefined
    : { order, values };
}

function readOrder(content: unknown): readonly [string, string] | null {
  const [nameContent, orderingContent] = fieldsOf(content);
  const name = readName(nameContent);
  const ordering = readValue(orderingContent);
  return name === null || ordering === null ? null : [name, ordering];
}

/** `undefined` for what is none. */
function readLacking(content: unknown): LackingRows | null | undefined {
  if (content === null) return null;
  const [columnsContent, keysContent] = fieldsOf(content);
  const columns = readColumns(columnsContent);
  const keys = listOf(keysContent, (key) => listOf(key, readValue));
  if (columns === null || keys === null || keys.length === 0) return undefined;
  return keys.every((key) => key.length === columns.length)
    ? { columns, keys }
    : undefined;
}

function readColumns(content: unknown): readonly string[] | null {
  const columns = listOf(content, readName);
  if (columns === null || columns.length === 0) return null;
  return columns.length > MOST_COLUMNS || new Set(columns).size < columns.length
    ? null
    : columns;
}

function readName(content: unknown): string | null {
  return typeof content === 'string' && isName(content) ? content : null;
}

/** A text that a server can hold. */
function readValue(content: unknown): string | null {
  return typeof content === 'string' && !content.includes('\0')
    ? content
    : null;
}

function fieldsOf(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : [];
}

/** The elements of a list as `read` has them; `null` for what is no list, or when it refuses one. */
function listOf<T>(
  content: unknown,
  read: (element: unknown) => T | null,
): readonly T[] | null {
  if (!Array.isArray(content)) return null;
  const found: T[] = [];
  for (const element of fieldsOf(content)) {
    const value = read(element);
    if (value === null) return null;
    found.push(value);
  }
  return found;
}

/** Tells tables apart. No name holds a NUL. */
export function tableKey({ schema, table }: TableName): string {
  return `${schema}\0${table}`;
}

function invalid(detail: string): HaltError {
  return new HaltError('snapshot_progress_invalid', { detail });
}
