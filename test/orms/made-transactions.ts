import type { Change, Lsn, Transaction } from 'nestjs-replicant';
import type { Shop } from './wiring/shop.js';

type Order = Shop['public.orders'];
type DistributiveOmit<C, K extends PropertyKey> = C extends unknown
  ? Omit<C, K>
  : never;

/** What tells one change of the table from another. */
export type MadeChange = DistributiveOmit<
  Change<Shop>,
  'relation' | 'schema' | 'table' | 'ordinal' | 'commitLsn' | 'columns'
>;

/** A transaction as it would be delivered. */
export function made(
  commitLsn: Lsn,
  ...changes: readonly MadeChange[]
): Transaction<Shop> {
  return {
    pipeline: 'orders',
    slotName: 'orders',
    xid: 1,
    commitLsn,
    commitEndLsn: commitLsn + 0x10n,
    commitTime: new Date(0),
    commitTimeMicros: 0n,
    changes: changes.map((change, ordinal): Change<Shop> => ({
      relation: 'public.orders',
      schema: 'public',
      table: 'orders',
      ordinal,
      commitLsn,
      columns: [],
      ...change,
    })),
    messages: [],
  };
}

export function inserted(
  commitLsn: Lsn,
  ...records: readonly Order[]
): Transaction<Shop> {
  return made(commitLsn, ...records.map(insert));
}

export function insert(record: Order): MadeChange {
  return { op: 'insert', record };
}

export function update(record: Order, oldId?: number): MadeChange {
  const old =
    oldId === undefined
      ? null
      : ({ kind: 'key', record: { id: oldId } } as const);
  return { op: 'update', record, unchanged: [], old };
}

export function remove(id: number): MadeChange {
  return { op: 'delete', old: { kind: 'key', record: { id } } };
}

export function truncate(): MadeChange {
  return {
    op: 'truncate',
    cascade: false,
    restartIdentity: false,
    together: ['public.orders'],
  };
}
