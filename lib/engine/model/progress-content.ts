import { formatLsn, type Lsn, parseLsn } from './lsn.js';
import {
  type Bound,
  type LackingRows,
  type ProgressTable,
  type SnapshotProgress,
  tableKey,
  type TableProgress,
  type TableState,
} from './snapshot-progress.js';

/** Columns of an index, at most. */
const MOST_COLUMNS = 32;
/** Of a name, which has 63 bytes at most in the encoding of its database; in UTF-8 one of them may take three. */
const MOST_NAME_BYTES = 3 * 63;

const LETTERS = {
  uncleared: 'u',
  waiting: 'w',
  copying: 'c',
  reading: 'r',
  done: 'd',
} as const satisfies Record<TableState['state'], string>;

/** Consecutive tables of one schema: their names, and for each OID how much it is above the one before. */
type TablesOfSchema = readonly [
  schema: string,
  names: string[],
  oidSteps: number[],
];
/** So many consecutive tables are in the state of this letter. */
type StateRun = [letter: string, count: number];

/** What JSON has to hold to tell which tables there are: like stands beside like, which compresses well. */
export function tablesContent(
  tables: readonly ProgressTable[],
): readonly TablesOfSchema[] {
  const content: TablesOfSchema[] = [];
  let before = 0;
  for (const { schema, table, oid } of tables) {
    let last = content.at(-1);
    if (last?.[0] !== schema) {
      last = [schema, [], []];
      content.push(last);
    }
    last[1].push(table);
    last[2].push(oid - before);
    before = oid;
  }
  return content;
}

/** What JSON has to hold to tell all but which tables there are. Most of them wait or are done, so that a few numbers tell it. */
export function statesContent({
  floor,
  complete,
  uncertain,
  tables,
}: SnapshotProgress): readonly unknown[] {
  const runs: StateRun[] = [];
  const details: unknown[] = [];
  for (const entry of tables) {
    const letter = LETTERS[entry.state];
    const last = runs.at(-1);
    if (last?.[0] === letter) last[1] += 1;
    else runs.push([letter, 1]);
    if (entry.state === 'copying') details.push(entry.pages);
    else if (entry.state === 'reading') {
      const { bound, lacking } = entry;
      details.push([
        bound === null ? null : [bound.order, bound.values],
        lacking === null ? null : [lacking.columns, lacking.keys],
      ]);
    }
  }
  return [
    formatLsn(floor),
    complete,
    uncertain === null ? null : formatLsn(uncertain),
    runs,
    details,
  ];
}

/** Reads {@link tablesContent}; `null` for anything else. */
export function readTables(content: unknown): readonly ProgressTable[] | null {
  let oid = 0;
  const groups = listOf(content, (group) => {
    const [schemaContent, names, stepsContent] = fieldsOf(group);
    const schema = readName(schemaContent);
    const steps = fieldsOf(stepsContent).values();
    return listOf(names, (name): ProgressTable | null => {
      const table = readName(name);
      oid += readNumber(steps.next().value);
      return schema === null || table === null || !isOid(oid)
        ? null
        : { schema, table, oid };
    });
  });
  const tables = groups?.flat() ?? null;
  const keys = new Set(tables?.map((name) => tableKey(name)));
  return tables === null || keys.size < tables.length ? null : tables;
}

/** Reads {@link statesContent} of these tables; `null` for anything else. */
export function readStates(
  content: unknown,
  tables: readonly ProgressTable[],
): SnapshotProgress | null {
  const [floorText, complete, uncertainText, runs, detailsContent] =
    fieldsOf(content);
  const floor = readPosition(floorText);
  const uncertain = uncertainText === null ? null : readPosition(uncertainText);
  const letters = readLetters(runs, tables.length).values();
  const details = fieldsOf(detailsContent).values();
  const entries: TableProgress[] = [];
  for (const table of tables) {
    const state = readState(letters.next().value, details);
    if (state === null) return null;
    entries.push({ ...table, ...state });
  }
  return floor === null || typeof complete !== 'boolean'
    ? null
    : { floor, complete, uncertain, tables: entries };
}

/** One for each table, as far as there are so many. */
function readLetters(content: unknown, most: number): readonly unknown[] {
  const letters: unknown[] = [];
  for (const run of fieldsOf(content)) {
    const [letter, count] = fieldsOf(run);
    const end = Math.min(letters.length + readNumber(count), most);
    while (letters.length < end) letters.push(letter);
  }
  return letters;
}

function readPosition(content: unknown): Lsn | null {
  return typeof content === 'string' ? parseLsn(content) : null;
}

function readNumber(content: unknown): number {
  return typeof content === 'number' ? content : 0;
}

function isOid(value: number): boolean {
  return Number.isInteger(value) && value > 0 && value < 2 ** 32;
}

/** @param details - of states that have any, in their order */
function readState(
  letter: unknown,
  details: Iterator<unknown>,
): TableState | null {
  switch (letter) {
    case LETTERS.uncleared:
      return { state: 'uncleared' };
    case LETTERS.waiting:
      return { state: 'waiting' };
    case LETTERS.copying:
      return readCopying(details.next().value);
    case LETTERS.done:
      return { state: 'done' };
    case LETTERS.reading:
      return readReading(details.next().value);
    default:
      return null;
  }
}

function readReading(content: unknown): TableState | null {
  const [boundContent, lackingContent] = fieldsOf(content);
  const bound = readBound(boundContent);
  const lacking = readLacking(lackingContent);
  if (bound === undefined || lacking === undefined) return null;
  return bound === null && lacking === null
    ? null
    : { state: 'reading', bound, lacking };
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
  const name = readValue(content);
  return name === null ||
    name === '' ||
    Buffer.byteLength(name) > MOST_NAME_BYTES
    ? null
    : name;
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
