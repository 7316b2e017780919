import { isDeepStrictEqual } from 'node:util';
import type { Client } from 'pg';
import type { Change, Row } from '../../../lib/engine/model/change.js';

/** Tables as a sink has them that applies every change once: a change that meets another row than it should is an error. */
export class RowMirror {
  readonly #tables = new Map<string, Map<string, Row>>();

  apply(change: Change): void {
    const rows = this.#tables.get(change.relation) ?? new Map<string, Row>();
    this.#tables.set(change.relation, rows);
    switch (change.op) {
      case 'insert':
        return put(rows, change.record);
      case 'update': {
        const before = take(rows, change.old?.record ?? change.record);
        return put(rows, { ...before, ...change.record });
      }
      case 'delete':
        take(rows, change.old.record);
        return;
      case 'truncate':
        rows.clear();
    }
  }

  /**
   * Compares a table with the one of the source.
   *
   * @returns what is wrong; `null` when nothing is
   */
  async difference(source: Client, table: string): Promise<string | null> {
    const { rows: originals, fields } = await source.query<Row>({
      text: `select * from ${table}`,
      types: { getTypeParser: () => (text: unknown) => text },
    });
    const rows = this.#tables.get(table) ?? new Map<string, Row>();
    if (originals.length !== rows.size)
      return `${table} has ${originals.length} rows, its mirror ${rows.size}`;
    for (const original of originals) {
      const copy = rows.get(String(original['id']));
      if (copy === undefined)
        return `${table} has a row ${String(original['id'])}, its mirror has not`;
      for (const { name } of fields)
        if (!isDeepStrictEqual(original[name], textOf(copy[name])))
          return `${name} of row ${String(original['id'])} in ${table} is not the same in its mirror`;
    }
    return null;
  }

  forget(table: string): void {
    this.#tables.delete(table);
  }
}

function put(rows: Map<string, Row>, row: Row): void {
  const id = String(row['id']);
  if (rows.has(id)) throw new Error(`Row ${id} comes twice.`);
  rows.set(id, row);
}

function take(rows: Map<string, Row>, row: Row): Row {
  const id = String(row['id']);
  const before = rows.get(id);
  if (before === undefined) throw new Error(`Row ${id} is not there.`);
  rows.delete(id);
  return before;
}

/** A value of whatever decoder as the server prints it. A column that nobody has brought is null. */
function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? `{${value.join(',')}}` : JSON.stringify(value);
}
