import type { Change, Transaction } from 'nestjs-replicant';
import type { Shop } from './shop.js';

type Order = Shop['public.orders'];

const MAX_ROWS = 1_000;

/** What changes leave of the rows they touch: first all rows may go, then some, and then the others are written. */
export class Portion {
  truncated = false;
  readonly #last = new Map<number, Order | null>();

  get size(): number {
    return this.#last.size;
  }

  get gone(): number[] {
    return [...this.#last].flatMap(([id, row]) => (row === null ? [id] : []));
  }

  get rows(): Order[] {
    return [...this.#last.values()].filter((row) => row !== null);
  }

  add(change: Change<Shop>): void {
    if (change.op === 'truncate') {
      this.truncated = true;
      this.#last.clear();
      return;
    }
    if (change.op !== 'insert' && change.old?.record.id !== undefined)
      this.#last.set(change.old.record.id, null);
    if (change.op === 'delete') return;
    const { id, total } = change.record;
    if (id === undefined || total === undefined)
      throw new Error('A column is missing: see "unchanged".');
    this.#last.set(id, { id, total });
  }
}

/** Transactions as portions that are written one after the other, so that one of any size fits in memory. */
export async function* portions(
  transactions: readonly Transaction<Shop>[],
): AsyncGenerator<Portion> {
  let portion = new Portion();
  for (const tx of transactions) {
    for await (const change of tx.changes) {
      portion.add(change);
      if (portion.size < MAX_ROWS) continue;
      yield portion;
      portion = new Portion();
    }
  }
  yield portion;
}
