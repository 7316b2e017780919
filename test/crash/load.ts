import type { Client } from 'pg';
import type { SchemaAndTable } from '../../lib/engine/options/decoder-options.js';
import { MIXED_TABLES, mixedStatements } from '../support/mixed-writer.js';
import { PausableLoop } from '../support/pausable-loop.js';
import type { TestDatabase } from '../support/test-database.js';
import { waitFor } from '../support/wait-for.js';
import { message } from './messages.js';
import { OpenTransactions } from './open-transactions.js';
import { FILL_STOCK, STOCK_TABLES, stockStatements } from './stock.js';

/**
 * Tables that {@link Load} writes to, each with a key. Every transaction puts its number into `journal`, with what
 * messages it sends.
 */
export const LOAD_TABLES = {
  source: tables('generated always as identity'),
  target: tables(''),
};

/** Their names. */
export const LOADED_TABLES: readonly SchemaAndTable[] = [
  ['public', 'account'],
  ['public', 'entry'],
  ['public', 'event'],
  ['public', 'bulk'],
  ['public', 'stock'],
  ['public', 'shelf'],
  ['public', 'journal'],
];

function tables(eventId: string): string {
  return `${MIXED_TABLES};
    alter table event replica identity default;
    alter table event add id bigint ${eventId} primary key;
    create table bulk(id int primary key, pad text);
    ${STOCK_TABLES};
    create table journal(id bigint primary key, tells boolean not null, calls boolean not null)`;
}

/** Between two transactions: a reader that is killed again and again has to keep up. */
const PAUSE_MS = 10;
/** With rows to copy, or transactions beside it, which take their time. */
const LONG_PAUSE_MS = 50;
/** So many transactions at most that the mirror does not have, where that is asked: a copy beside the stream waits for it. */
const MOST_AHEAD = 12;
/** 6 MB: three times as much as is kept of a transaction before the sink reads it while it arrives. */
const LARGE_ROWS = 600;
const MESSAGE_EVERY = 4;

/** Which message a transaction sends: one that belongs to it (`tells`), or one that comes even when it rolls back (`calls`). */
function messagesOf(n: number): {
  readonly tells: boolean;
  readonly calls: boolean;
} {
  return {
    tells: n % MESSAGE_EVERY === 1,
    calls: n % MESSAGE_EVERY === 3,
  };
}

function statements(
  n: number,
  large: boolean,
  stocked: boolean,
): readonly string[] {
  const { tells, calls } = messagesOf(n);
  return [
    ...(calls ? [message(n, false)] : []),
    `insert into journal values (${n}, ${tells}, ${calls})`,
    ...(tells ? [message(n, true)] : []),
    ...(stocked ? stockStatements(n) : []),
    ...(large ? largeStatements(n) : mixedStatements(n)),
  ];
}

function largeStatements(n: number): readonly string[] {
  return [
    'delete from bulk',
    `insert into bulk select g, repeat(md5('${n}' || g), 320) from generate_series(1, ${LARGE_ROWS}) g`,
    'update bulk set id = -id where id % 10 = 0',
  ];
}

/** Writes transactions of every kind to the source, with messages, until it is paused. */
export class Load {
  readonly #loop: PausableLoop;
  #written = 0;
  #largeWanted = false;
  /** Numbers of transactions that the mirror may not have. */
  #ahead: readonly number[] = [];

  private constructor(
    private readonly client: Client,
    private readonly stocked: boolean,
    private readonly applied: (() => Promise<number | null>) | null,
    private readonly beside: readonly OpenTransactions[],
  ) {
    const pause = stocked || beside.length > 0 ? LONG_PAUSE_MS : PAUSE_MS;
    this.#loop = new PausableLoop((n) => this.#step(n), pause);
  }

  /**
   * @param stocked - whether there are rows before it begins, among which it writes too
   * @param applied - gives the number of the last transaction that was applied; `null` before there is any
   * @param open - whether there are transactions beside it that stay open
   */
  static async create(
    source: TestDatabase,
    stocked = false,
    applied: (() => Promise<number | null>) | null = null,
    open = false,
  ): Promise<Load> {
    if (stocked) await source.query(FILL_STOCK);
    const beside = open
      ? await OpenTransactions.create(() => source.connect())
      : [];
    return new Load(await source.connect(), stocked, applied, beside);
  }

  resume(): void {
    this.#loop.resume();
    for (const one of this.beside) one.resume();
  }

  /** Resolves when no transaction runs. */
  async pause(): Promise<void> {
    await Promise.all(this.#loops.map((one) => one.pause()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#loops.map((one) => one.stop()));
  }

  /** Leaves a transaction open until it is resumed, while it is paused, and goes on beside it. */
  async leaveOpen(): Promise<void> {
    await this.beside[0]?.open();
    this.#loop.resume();
  }

  /** Sends messages that are rolled back, in the next transactions that stay open. */
  makeUnclear(): void {
    for (const one of this.beside) one.makeUnclear();
  }

  /** Makes the next transaction a large one. */
  makeLarge(): void {
    this.#largeWanted = true;
  }

  /** Writes some transactions while it is paused. */
  async writes(transactions: number): Promise<void> {
    const enough = this.#written + transactions;
    while (this.#written < enough) await this.#loop.once();
  }

  /** Waits until it has written some more. */
  async moves(transactions: number): Promise<void> {
    const enough = this.#written + transactions;
    await waitFor(() => this.#written >= enough, {
      message: 'the load to move',
      timeout: 30_000,
    });
  }

  get #loops(): readonly (PausableLoop | OpenTransactions)[] {
    return [this.#loop, ...this.beside];
  }

  async #step(n: number): Promise<void> {
    if (this.applied !== null) {
      const applied = await this.applied();
      this.#ahead = this.#ahead.filter((one) => one > (applied ?? 0));
      if (applied !== null && this.#ahead.length >= MOST_AHEAD) return;
      this.#ahead = [...this.#ahead, n];
    }
    await this.#write(n);
  }

  async #write(n: number): Promise<void> {
    const large = this.#largeWanted;
    this.#largeWanted = false;
    try {
      await this.client.query(
        `begin; ${statements(n, large, this.stocked).join('; ')}; commit`,
      );
      this.#written += 1;
    } catch {
      await this.client.query('rollback');
      // What was called has come all the same, and its transaction never.
      if (messagesOf(n).calls)
        await this.client.query(
          'insert into journal values ($1, false, true)',
          [n],
        );
    }
  }
}
