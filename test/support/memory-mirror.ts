import { escapeIdentifier } from 'pg';
import type { Row } from '../../lib/engine/model/change.js';
import type { Column } from '../../lib/engine/model/relation.js';
import type { AnySnapshotRow } from '../../lib/engine/model/snapshot.js';
import type { RowMessage } from '../../lib/engine/snapshot/incremental/stream-watch.js';
import type { TestDatabase } from './test-database.js';

/**
 * What a sink has that writes by the replica identity, and adds rows of tables without one. Values are the server's text; a column that
 * nobody has brought is not there.
 */
export class MemoryMirror {
  readonly #tables = new Map<string, Row[] | Map<string, Row>>();

  /** @param unkeyed - tables that may have equal rows */
  constructor(private readonly unkeyed: readonly string[]) {}

  clear(relation: string): void {
    this.#tables.delete(relation);
  }

  change(message: RowMessage): void {
    if (message.kind === 'truncate') {
      for (const { name } of message.relations) this.clear(name);
      return;
    }
    const { name, columns } = message.relation;
    switch (message.kind) {
      case 'insert':
        return this.#put(name, columns, message.record);
      case 'delete':
        this.#take(name, columns, message.old.record);
        return;
      case 'update': {
        const before = this.#take(
          name,
          columns,
          message.old?.record ?? message.record,
        );
        return this.#put(name, columns, { ...before, ...message.record });
      }
    }
  }

  /** Writes a row of a snapshot. */
  fill(row: AnySnapshotRow): void {
    const { relation, columns, record, unchanged } = row;
    const before =
      unchanged.length > 0 || this.#isKeyed(relation)
        ? this.#take(relation, columns, record)
        : {};
    this.#put(relation, columns, { ...before, ...record });
  }

  /** The rows of a table, each as its columns in order; a column that is not there is `undefined`. */
  async differences(
    source: TestDatabase,
    relation: string,
  ): Promise<readonly string[]> {
    const [schema = '', table = ''] = relation.split('.');
    const rows = await source.query<{ row: Row }>(
      `select (select jsonb_object_agg(key, value) from jsonb_each_text(to_jsonb(t))) as row from ${escapeIdentifier(schema)}.${escapeIdentifier(table)} t`,
    );
    const expected = rows.map(({ row }) => shown(row)).toSorted();
    const found = [...this.rows(relation)].map(shown).toSorted();
    const missing = new Set(expected);
    for (const text of found) missing.delete(text);
    const wrong = new Set(found);
    for (const text of expected) wrong.delete(text);
    return [
      ...(expected.length === found.length
        ? []
        : [`${found.length} rows in place of ${expected.length}`]),
      ...[...missing].slice(0, 5).map((text) => `missing ${text}`),
      ...[...wrong].slice(0, 5).map((text) => `wrong ${text}`),
    ];
  }

  rows(relation: string): Iterable<Row> {
    return this.#tables.get(relation)?.values() ?? [];
  }

  #put(relation: string, columns: readonly Column[], record: Row): void {
    const key = keyOf(columns, record);
    let rows = this.#tables.get(relation);
    if (rows === undefined) {
      rows = this.#isKeyed(relation) ? new Map<string, Row>() : [];
      this.#tables.set(relation, rows);
    }
    if (Array.isArray(rows)) rows.push(record);
    else rows.set(key, record);
  }

  #take(relation: string, columns: readonly Column[], record: Row): Row {
    const rows = this.#tables.get(relation);
    const key = keyOf(columns, record);
    if (Array.isArray(rows)) {
      const place = rows.findIndex((row) => keyOf(columns, row) === key);
      return (place < 0 ? undefined : rows.splice(place, 1)[0]) ?? {};
    }
    const taken = rows?.get(key);
    rows?.delete(key);
    return taken ?? {};
  }

  #isKeyed(relation: string): boolean {
    return !this.unkeyed.includes(relation);
  }
}

function keyOf(columns: readonly Column[], record: Row): string {
  return JSON.stringify(
    columns.filter(({ key }) => key).map(({ name }) => record[name]),
  );
}

function shown(row: Row): string {
  const names = Object.keys(row).toSorted();
  return names
    .map((name) => `${name}=${String(row[name]).slice(0, 40)}`)
    .join(' ');
}
