import type { Row } from '../model/change.js';
import { errorClass } from '../model/error-class.js';
import { HaltError } from '../model/halt.js';
import type { Column } from '../model/relation.js';
import { setColumn } from '../model/set-column.js';
import type { AnySnapshotRow } from '../model/snapshot.js';
import type { PublishedTable } from '../server/published-table.js';
import type { TypeTable } from '../values/type-table.js';
import type { ValueParser } from '../values/value-parser.js';
import type { Fill, RowMaker } from './incremental/chunk.js';
import { identityOfTable } from './incremental/row-identity.js';
import type { RawRow } from './raw-row.js';

/** What making rows needs of a type table. */
export type ColumnTypes = Pick<TypeTable, 'parser' | 'name'>;

/** What is the same in all rows of a table. */
interface TableFacts {
  readonly name: string;
  readonly schema: string;
  readonly table: string;
  readonly columns: readonly Column[];
}

interface ColumnReader {
  readonly name: string;
  readonly key: boolean;
  readonly parse: ValueParser;
}

const NOTHING: readonly string[] = Object.freeze([]);

/** Makes rows with the values, and the description of columns, that a stream with these types would bring. */
export function rowMaker(table: PublishedTable, types: ColumnTypes): RowMaker {
  return new TableRowMaker(table, types);
}

/** A row that was read. There is no position in it, so that JSON needs no help. */
class ReadRow implements AnySnapshotRow {
  readonly op = 'snapshot';
  readonly relation: string;
  readonly schema: string;
  readonly table: string;
  readonly record: Row;
  readonly unchanged: readonly string[];
  readonly columns: readonly Column[];

  constructor(facts: TableFacts, record: Row, unchanged: readonly string[]) {
    this.relation = facts.name;
    this.schema = facts.schema;
    this.table = facts.table;
    this.record = record;
    this.unchanged = unchanged;
    this.columns = facts.columns;
  }
}

class TableRowMaker implements RowMaker {
  readonly #facts: TableFacts;
  readonly #readers: readonly ColumnReader[];
  /** Every record is a copy of it: objects that are born with all their columns are made twice as fast. */
  readonly #nulls: Row = {};

  constructor(published: PublishedTable, types: ColumnTypes) {
    const { name, schema, table, columns } = published;
    const identity = identityOfTable(published).columns;
    this.#facts = {
      name,
      schema,
      table,
      columns: columns.map((column) => ({
        name: column.name,
        typeOid: column.typeOid,
        type: types.name(column.typeOid),
        typeModifier: column.typeModifier,
        key: column.key,
      })),
    };
    this.#readers = columns.map((column) => ({
      name: column.name,
      key: identity.includes(column.name),
      parse: types.parser(column.typeOid),
    }));
    for (const column of columns) setColumn(this.#nulls, column.name, null);
  }

  whole(row: RawRow): AnySnapshotRow {
    this.#requireLength(row);
    const readers = this.#readers;
    // With a column of the name __proto__ of its own, assigning to that is plain too.
    const record = { ...this.#nulls };
    let at = 0;
    try {
      for (; at < readers.length; at += 1) {
        const reader = readers[at];
        const text = row[at];
        if (reader !== undefined && text !== null && text !== undefined)
          record[reader.name] = reader.parse(text);
      }
    } catch (error) {
      throw this.#failed(at, error);
    }
    return new ReadRow(this.#facts, record, NOTHING);
  }

  fill({ row, columns }: Fill): AnySnapshotRow {
    this.#requireLength(row);
    const record: Row = {};
    const unchanged: string[] = [];
    for (const [at, { name, key, parse }] of this.#readers.entries()) {
      if (!key && !columns.includes(at)) {
        unchanged.push(name);
        continue;
      }
      const text = row[at] ?? null;
      try {
        setColumn(record, name, text === null ? null : parse(text));
      } catch (error) {
        throw this.#failed(at, error);
      }
    }
    return new ReadRow(this.#facts, record, unchanged);
  }

  /** A row without columns is an empty line, which is one empty value. */
  #requireLength(row: RawRow): void {
    const { length } = this.#readers;
    if (row.length === length || length === 0) return;
    throw new HaltError('decode_failure', {
      detail: `a row of ${this.#facts.name} has ${row.length} values for ${length} columns`,
    });
  }

  #failed(at: number, error: unknown): HaltError {
    const column = JSON.stringify(this.#readers[at]?.name);
    return new HaltError('decode_failure', {
      detail: `the parser of column ${column} of ${this.#facts.name} threw ${errorClass(error)}`,
    });
  }
}
