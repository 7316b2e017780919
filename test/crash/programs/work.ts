import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import {
  type CheckpointQuery,
  formatLsn,
  type Lsn,
  type Message,
  type SnapshotContext,
  type Transaction,
} from '../../../lib/index.js';
import type { AnySnapshotRow } from '../../../lib/engine/model/snapshot.js';
import { setting } from '../../apps/settings.js';
import { Target } from '../../apps/target.module.js';
import { copyRows, isWhole } from './copy-rows.js';
import { applyTransaction, hear, skipTransaction } from './ledger.js';
import { Points } from './points.js';

/** Moves the checkpoint of the sink, if it keeps one, to the end of what was delivered, and gives what of that is new. */
type Advance = (query: CheckpointQuery) => Promise<readonly Transaction[]>;

/** Stores the progress of the sink, if it keeps one. */
type Keep = (query: CheckpointQuery) => Promise<void>;

const KEEP_NOTHING: Keep = async () => {};

/** What the sinks do, each in its mode. */
@Injectable()
export class Work {
  readonly #query: CheckpointQuery = (sql, values) =>
    this.target.pool.query(sql, [...values]);
  /** What is done behind a promise. */
  #behind: Promise<void> = Promise.resolve();

  constructor(
    private readonly target: Target,
    private readonly points: Points,
  ) {}

  /** Applies what was delivered together in one database transaction, with the checkpoint, unless a fault is planted. */
  async apply(
    transactions: readonly Transaction[],
    advance: Advance,
  ): Promise<void> {
    switch (process.env['PLANT']) {
      case 'early-ack': {
        const fresh = await advance(this.#query);
        return this.#doBehind(transactions, () =>
          this.#write(transactions, async () => fresh),
        );
      }
      case 'late-advance':
        await this.#write(transactions, async () => transactions);
        await advance(this.#query);
        return;
      default:
        return this.#write(transactions, advance);
    }
  }

  /** Writes rows that existed already in one database transaction, with the progress, unless a fault is planted. */
  async copy(
    rows: readonly AnySnapshotRow[],
    context: SnapshotContext,
    keep: Keep,
  ): Promise<void> {
    switch (process.env['PLANT']) {
      case 'early-ack':
        await keep(this.#query);
        this.#behind = this.#behind
          .then(() => this.#copy(rows, context, KEEP_NOTHING))
          .catch(() => {});
        return;
      case 'late-advance':
        await this.#copy(rows, context, KEEP_NOTHING);
        return keep(this.#query);
      default:
        return this.#copy(rows, context, keep);
    }
  }

  /** Keeps a message that belongs to no transaction. */
  async hear(message: Message): Promise<void> {
    await this.target.transaction(async (client) => {
      await hear(client, message);
      await this.points.at('in a message');
    });
    await this.points.at('before the ack of a message');
  }

  async #write(
    transactions: readonly Transaction[],
    advance: Advance,
  ): Promise<void> {
    await this.points.beyond('in an open batch');
    const half = Math.ceil(transactions.length / 2);
    await this.target.transaction(async (client) => {
      const fresh = await advance(inside(client));
      for (const [index, transaction] of transactions.entries()) {
        if (index > 0 && index === half) await this.points.at('in a batch');
        await (fresh.includes(transaction)
          ? applyTransaction(client, transaction, this.points)
          : skipTransaction(client, transaction));
      }
    });
    await this.points.at('before the ack');
  }

  async #copy(
    rows: readonly AnySnapshotRow[],
    context: SnapshotContext,
    keep: Keep,
  ): Promise<void> {
    await this.target.transaction(async (client) => {
      await keep(inside(client));
      await copyRows(client, rows, context, this.points);
    });
    if (!isWhole(rows)) return;
    await this.points.at(
      context.mode === 'initial'
        ? 'before the ack of a page'
        : 'before the ack of a chunk',
    );
  }

  /** Does some work once the server has been told that it is done. */
  #doBehind(
    transactions: readonly Transaction[],
    work: () => Promise<void>,
  ): Promise<void> {
    const end = transactions.at(-1)?.commitEndLsn ?? null;
    // What arrives still cannot be read behind the promise.
    if (end === null) return work();
    this.#behind = this.#behind
      .then(() => this.#forgotten(end))
      .then(work)
      .catch(() => {});
    return Promise.resolve();
  }

  /** Resolves when the server may have forgotten what comes before the position. The target is on the same server. */
  async #forgotten(end: Lsn): Promise<void> {
    for (;;) {
      const { rowCount } = await this.target.pool.query(
        'select from pg_replication_slots where slot_name = $1 and confirmed_flush_lsn >= $2',
        [setting('SLOT'), formatLsn(end)],
      );
      if (rowCount === 1) return;
    }
  }
}

function inside(client: PoolClient): CheckpointQuery {
  return (sql, values) => client.query(sql, [...values]);
}
