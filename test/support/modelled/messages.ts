import type { Row } from '../../../lib/engine/model/change.js';
import type { Column, Relation } from '../../../lib/engine/model/relation.js';
import type { PublishedTable } from '../../../lib/engine/server/published-table.js';
import type { RowMessage } from '../../../lib/engine/snapshot/incremental/stream-watch.js';
import type { RawRow } from '../../../lib/engine/snapshot/raw-row.js';
import type { ModelChange, ModelRow } from './source.js';

/** How the modelled table is identified and read. */
export type TableKind = 'keyed' | 'full' | 'keyless';

const OID = 16_384;

/** The modelled table as the catalog and the stream have it. */
export class ModelTable {
  readonly published: PublishedTable;
  readonly #relation: Relation;
  readonly #isFull: boolean;
  readonly #names: readonly string[];

  constructor(readonly kind: TableKind) {
    this.#isFull = kind !== 'keyed';
    this.#names =
      kind === 'keyless' ? ['version', 'large'] : ['id', 'version', 'large'];
    const columns: Column[] = this.#names.map((name) => ({
      name,
      typeOid: 25,
      type: 'text',
      typeModifier: -1,
      key: this.#isFull || name === 'id',
    }));
    const replicaIdentity = this.#isFull ? 'full' : 'default';
    const names = { oid: OID, schema: 'public', table: 't', name: 'public.t' };
    this.#relation = { ...names, replicaIdentity, columns };
    this.published = {
      ...names,
      quotedName: 'public.t',
      partitioned: false,
      replicaIdentity,
      columns: columns.map((column) => ({
        ...column,
        quotedName: column.name,
      })),
      orderKey:
        kind === 'keyless'
          ? null
          : [
              {
                name: 'id',
                quotedName: 'id',
                quotedType: 'integer',
                operatorSchema: 'pg_catalog',
                quotedCollation: null,
              },
            ],
      identityKey: null,
      rowFilter: null,
      estimatedRows: null,
      estimatedRowBytes: null,
    };
  }

  message(change: ModelChange): RowMessage {
    const relation = this.#relation;
    switch (change.op) {
      case 'insert':
        return { kind: 'insert', relation, record: this.#record(change.row) };
      case 'update': {
        const { before, row } = change;
        const isMoved = before.id !== row.id;
        const old = this.#isFull
          ? ({ kind: 'full', record: this.#record(before) } as const)
          : isMoved
            ? ({ kind: 'key', record: { id: String(before.id) } } as const)
            : null;
        const unchanged = change.unchanged ? ['large'] : [];
        const record = this.#record(row);
        for (const name of unchanged) delete record[name];
        return { kind: 'update', relation, record, unchanged, old };
      }
      case 'delete': {
        const record = this.#record(change.before);
        return {
          kind: 'delete',
          relation,
          old: this.#isFull
            ? { kind: 'full', record }
            : { kind: 'key', record: { id: record['id'] } },
        };
      }
      case 'truncate':
        return {
          kind: 'truncate',
          relations: [relation],
          cascade: false,
          restartIdentity: false,
        };
    }
  }

  raw(row: ModelRow): RawRow {
    return this.#names.map((name) => valueOf(row, name));
  }

  #record(row: ModelRow): Row {
    return Object.fromEntries(
      this.#names.map((name) => [name, valueOf(row, name)]),
    );
  }
}

function valueOf(row: ModelRow, name: string): string {
  return String(
    name === 'id' ? row.id : name === 'version' ? row.version : row.large,
  );
}
