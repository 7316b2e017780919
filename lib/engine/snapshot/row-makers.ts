import type { Row } from '../model/change.js';
import { errorClass } from '../model/error-class.js';
import { HaltError } from '../model/halt.js';
import type { Column } from '../model/relation.js';
import type { AnySnapshotRow } from '../model/snapshot.js';
import type { TypesOption } from '../options/pipeline-options.js';
import type { PublishedTable } from '../server/published-table.js';
import type { CommandSession } from '../server/session.js';
import { readTypes } from '../server/type-catalog.js';
import { TypeTable } from '../values/type-table.js';
import type { ValueParser } from '../values/value-parser.js';
import type { Fill, RowMaker } from './incremental/chunk.js';
import type { RawRow } from './raw-row.js';

/** Of each of the tables whose types were asked for. */
export type RowMakers = (table: PublishedTable) => RowMaker;

/** What a Type message says of the types with the OIDs in `$1`: schema and name of the type, or of the one under a domain. */
const ANNOUNCED_TYPES = `
  with recursive under (oid, base) as (
    select t, t from pg_catalog.unnest(cast($1 as pg_catalog.oid[])) t
    union all
    select u.oid, t.typbasetype from under u
      join pg_catalog.pg_type t on t.oid = u.base and t.typtype = 'd')
  select u.oid, n.nspname as schema, t.typname as name
    from under u
      join pg_catalog.pg_type t on t.oid = u.base and t.typtype <> 'd'
      join pg_catalog.pg_namespace n on n.oid = t.typnamespace`;

/** Asks the catalog for the types of all columns, so that their values come out as the stream brings them. */
export async function readRowMakers(
  session: CommandSession,
  option: TypesOption,
  tables: readonly PublishedTable[],
): Promise<RowMakers> {
  const types = new TypeTable(option);
  const columns = tables.flatMap((table) => table.columns);
  const oids = [...new Set(columns.map(({ typeOid }) => typeOid))];
  const announced = await session.query(ANNOUNCED_TYPES, [
    `{${oids.join(',')}}`,
  ]);
  for (const { oid, schema, name } of announced)
    types.announce(Number(oid), schema ?? '', name ?? '');
  const unresolved = types.unresolved(oids);
  if (unresolved.length > 0)
    types.learn(unresolved, await readTypes(session, unresolved));
  return (table) => new TableRowMaker(table, types);
}

interface ParsedColumn {
  readonly name: string;
  readonly key: boolean;
  readonly parse: ValueParser;
}

class TableRowMaker implements RowMaker {
  readonly #table: PublishedTable;
  readonly #columns: readonly Column[];
  readonly #parsed: readonly ParsedColumn[];

  constructor(table: PublishedTable, types: TypeTable) {
    this.#table = table;
    this.#columns = table.columns.map(
      ({ name, typeOid, typeModifier, key }) => ({
        name,
        typeOid,
        type: types.name(typeOid),
        typeModifier,
        key,
      }),
    );
    this.#parsed = table.columns.map(({ name, key, typeOid }) => ({
      name,
      key,
      parse: types.parser(typeOid),
    }));
  }

  whole(row: RawRow): AnySnapshotRow {
    const record: Row = {};
    for (const [index, column] of this.#parsed.entries())
      this.#set(record, column, row[index]);
    return this.#row(record, []);
  }

  fill({ row, columns }: Fill): AnySnapshotRow {
    const record: Row = {};
    const unchanged: string[] = [];
    for (const [index, column] of this.#parsed.entries()) {
      if (column.key || columns.includes(index))
        this.#set(record, column, row[index]);
      else unchanged.push(column.name);
    }
    return this.#row(record, unchanged);
  }

  #row(record: Row, unchanged: readonly string[]): AnySnapshotRow {
    const { name, schema, table } = this.#table;
    return {
      op: 'snapshot',
      relation: name,
      schema,
      table,
      record,
      unchanged,
      columns: this.#columns,
    };
  }

  #set(
    record: Row,
    column: ParsedColumn,
    text: string | null | undefined,
  ): void {
    const { name } = column;
    const value =
      text === null || text === undefined ? null : this.#parse(column, text);
    // Any name is plain data; only this one would not be when assigned.
    if (name === '__proto__')
      Object.defineProperty(record, name, {
        value,
        configurable: true,
        enumerable: true,
        writable: true,
      });
    else record[name] = value;
  }

  #parse({ name, parse }: ParsedColumn, text: string): unknown {
    try {
      return parse(text);
    } catch (error) {
      throw new HaltError('decode_failure', {
        detail: `the parser of column ${JSON.stringify(name)} of ${this.#table.name} threw ${errorClass(error)}`,
      });
    }
  }
}
