import type {
  KeyColumn,
  PublishedTable,
} from '../../server/published-table.js';
import { selectFrom } from '../table-query.js';

/** Which rows of a table are read, in which order and how many at most. */
export type ChunkRange =
  /** Those behind a row, by the order key. */
  | {
      readonly kind: 'ordered';
      readonly order: readonly KeyColumn[];
      /** Values of the order key; `null` for the first rows. */
      readonly after: readonly string[] | null;
      readonly limit: number;
    }
  /** Those with one of these keys. */
  | {
      readonly kind: 'keys';
      readonly columns: readonly KeyColumn[];
      readonly keys: readonly (readonly string[])[];
    }
  /** All of them, in no order. */
  | { readonly kind: 'whole' };

/** A statement that takes no parameters, and what has to be set for it in its transaction. */
export interface ChunkQuery {
  readonly sql: string;
  /** By the name of the setting. Values of the last kind of range are arrays. */
  readonly settings: ReadonlyMap<string, string | readonly string[]>;
}

/** COPY takes no parameters, so key values travel in settings of this name. */
const SETTING = 'nestjs_replicant.key_';
/** The place of key values in a list of them. */
const ALIAS = 'nestjs_replicant_key';

/** Takes the lock that keeps the table as it is, and no snapshot yet: a snapshot from before a rewrite would see an empty table. */
export function lockSql(table: PublishedTable): string {
  return `LOCK TABLE ${selectFrom(table).from} IN ACCESS SHARE MODE`;
}

/**
 * Reads rows of a table. Keys are compared and ordered by the server alone, as values of their own types.
 *
 * @see {@link https://www.postgresql.org/docs/current/functions-comparisons.html#ROW-WISE-COMPARISON | Row constructor comparison}
 */
export function chunkQuery(
  table: PublishedTable,
  range: ChunkRange,
): ChunkQuery {
  const { columns, from, filter } = selectFrom(table);
  const { condition, tail, settings } = pieces(range);
  const where = [filter, condition].filter((part) => part !== null);
  const select =
    `SELECT ${columns} FROM ${from}` +
    (where.length === 0 ? '' : ` WHERE ${where.join(' AND ')}`) +
    tail;
  return { sql: `COPY (${select}) TO STDOUT`, settings };
}

interface Pieces {
  readonly condition: string | null;
  readonly tail: string;
  readonly settings: Map<string, string | readonly string[]>;
}

function pieces(range: ChunkRange): Pieces {
  switch (range.kind) {
    case 'whole':
      return { condition: null, tail: '', settings: new Map() };
    case 'ordered': {
      const { order, after, limit } = range;
      return {
        condition: after === null ? null : behind(order),
        tail: ` ORDER BY ${names(order)} LIMIT ${limit}`,
        settings: new Map([
          ...searchPath(order),
          ...(after ?? []).map((value, place): [string, string] => [
            `${SETTING}${place}`,
            value,
          ]),
        ]),
      };
    }
    case 'keys': {
      const { columns, keys } = range;
      return {
        condition: among(columns),
        tail: '',
        settings: new Map<string, string | readonly string[]>([
          ...searchPath(columns),
          ...columns.map((_, place): [string, readonly string[]] => [
            `${SETTING}${place}`,
            keys.map((key) => key[place] ?? ''),
          ]),
        ]),
      };
    }
  }
}

function behind(order: readonly KeyColumn[]): string {
  const values = order.map(
    ({ quotedType }, place) => `${setting(place)}::${quotedType}`,
  );
  return `(${names(order)}) ${operator('>', order)} (${values.join(', ')})`;
}

function among(columns: readonly KeyColumn[]): string {
  const values = columns.map(
    ({ quotedType }, place) => `${ALIAS}.v${place}::${quotedType}`,
  );
  const lists = columns.map(
    (_, place) => `${setting(place)}::pg_catalog.text[]`,
  );
  return (
    `(${names(columns)}) ${operator('=', columns)} ANY (SELECT ${values.join(', ')}` +
    ` FROM ROWS FROM (${lists.map((list) => `pg_catalog.unnest(${list})`).join(', ')})` +
    ` AS ${ALIAS}(${columns.map((_, place) => `v${place}`).join(', ')}))`
  );
}

function setting(place: number): string {
  return `pg_catalog.current_setting('${SETTING}${place}')`;
}

function names(columns: readonly KeyColumn[]): string {
  return columns.map(({ quotedName }) => quotedName).join(', ');
}

/** One operator name stands for the operators of all columns. */
function operator(name: string, columns: readonly KeyColumn[]): string {
  const [schema, ...others] = operatorSchemas(columns);
  return others.length === 0 ? `OPERATOR(${schema}.${name})` : name;
}

/**
 * Operators in several schemas are found by it, those of pg_catalog in any case. Where it can stay empty it does: it decides how values of
 * some types are printed.
 */
function searchPath(
  columns: readonly KeyColumn[],
): readonly [string, string][] {
  const schemas = operatorSchemas(columns);
  if (schemas.length === 1) return [];
  const others = schemas.filter((schema) => schema !== 'pg_catalog');
  return [['search_path', others.join(', ')]];
}

function operatorSchemas(columns: readonly KeyColumn[]): readonly string[] {
  return [...new Set(columns.map(({ operatorSchema }) => operatorSchema))];
}
