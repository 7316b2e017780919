import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { MIXED_TABLES, mixedStatements } from '../support/mixed-writer.js';
import { PausableLoop } from '../support/pausable-loop.js';
import type { TestDatabase } from '../support/test-database.js';
import { waitFor } from '../support/wait-for.js';

/**
 * Tables that {@link Load} writes to. Every transaction puts its number into `journal`. In the target nothing keeps a
 * second one out.
 */
export const LOAD_TABLES = {
  source: tables('primary key'),
  target: tables(''),
};

function tables(journalKey: string): string {
  return `${MIXED_TABLES};
    create table journal(id bigint ${journalKey});
    create table bulk(id int primary key, pad text);
    create type mood as enum ('sad', 'ok', 'happy');
    create table typed(id int primary key, mood mood, moods mood[], document jsonb, at timestamptz, raw bytea, ratio float8)`;
}

/** Between two transactions: a reader that is killed again and again has to keep up. */
const PAUSE_MS = 8;
/** More than is kept of a transaction before the sink reads it while it arrives. */
const LARGE_ROWS = 300;
const LARGE_EVERY = 150;
const EXTEND_EVERY = 400;
const TYPED_EVERY = 7;

/** Statements of one transaction; they depend on `n` alone. */
function statements(n: number): readonly string[] {
  if (n % LARGE_EVERY === 0) return largeStatements(n);
  if (n % TYPED_EVERY === 0) return typedStatements(n);
  return mixedStatements(n);
}

function largeStatements(n: number): readonly string[] {
  return [
    'delete from bulk',
    'savepoint a',
    bulk('undone'),
    'rollback to a',
    bulk(`n${n}`),
    `update bulk set id = -id where id % 10 = 0`,
  ];
}

function bulk(text: string): string {
  return `insert into bulk select g, repeat(md5('${text}' || g), 320) from generate_series(1, ${LARGE_ROWS}) g`;
}

function typedStatements(n: number): readonly string[] {
  const id = (n / TYPED_EVERY) % 31;
  return [
    `insert into typed values (${id}, 'ok', '{sad,happy,NULL}', '{"n": ${n}}', '2026-01-01 00:00:00.000001Z', '\\x00ff', ${n} / 7.0)
       on conflict (id) do update set mood = 'happy', moods = array[excluded.mood], document = excluded.document, ratio = excluded.ratio`,
  ];
}

/** Additive changes of the schema. They come to the target first, which knows nothing of DDL. */
function extensions(n: number): readonly string[] {
  return [
    `alter table account add column if not exists extra_${n} text default 'd'`,
    `create table if not exists extra_${n}(id int primary key, mood mood)`,
  ];
}

/** Rows for what {@link extensions} has added. */
function extendedStatements(n: number): readonly string[] {
  return [
    `update account set extra_${n} = 'e' where id % 10 = 3`,
    `insert into extra_${n} values (1, 'sad')`,
  ];
}

/** Writes transactions of every kind to the source until it is paused. It outlives the server. */
export class Load {
  readonly #loop = new PausableLoop((n) => this.#step(n), PAUSE_MS);
  #client: Client | null = null;
  #written = 0;

  constructor(
    private readonly source: TestDatabase,
    private readonly target: TestDatabase,
  ) {}

  /** Transactions that were committed for certain. */
  get written(): number {
    return this.#written;
  }

  resume(): void {
    this.#loop.resume();
  }

  /** Resolves when no transaction runs. */
  async pause(): Promise<void> {
    await this.#loop.pause();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#client?.end().catch(() => {});
  }

  /** Makes one of the next transactions a large one. */
  makeLarge(): void {
    this.#loop.skipTo(LARGE_EVERY);
  }

  /** Waits until it has written some more. */
  async moves(transactions: number): Promise<void> {
    const enough = this.#written + transactions;
    await waitFor(() => this.#written >= enough, {
      message: 'the load to move',
      timeout: 30_000,
    });
  }

  async #step(n: number): Promise<void> {
    await this.#write(n, statements(n));
    if (n % EXTEND_EVERY === 0) await this.#extend(n);
  }

  async #write(n: number, sql: readonly string[]): Promise<void> {
    try {
      const client = await this.#session();
      const all = [`insert into journal values (${n})`, ...sql].join('; ');
      // Some commits do not wait for the disk: a crash of the server undoes them.
      const mode = n % 3 === 0 ? 'off' : 'on';
      await client.query(
        `begin; set local synchronous_commit = ${mode}; ${all}; commit`,
      );
      this.#written += 1;
    } catch {
      await this.#client?.query('rollback').catch(() => this.#drop());
    }
  }

  async #extend(n: number): Promise<void> {
    for (const sql of extensions(n)) {
      await this.target.query(sql);
      await this.#insist(sql);
    }
    await this.#write(-n, extendedStatements(n));
  }

  /** Tries again until the server has taken the statement. */
  async #insist(sql: string): Promise<void> {
    await waitFor(
      async () => {
        try {
          await (await this.#session()).query(sql);
          return true;
        } catch {
          this.#drop();
          return false;
        }
      },
      { message: 'the schema to be extended', timeout: 60_000 },
    );
  }

  async #session(): Promise<Client> {
    if (this.#client !== null) return this.#client;
    const client = new Client(this.source.connection);
    client.on('error', () => this.#drop());
    try {
      await client.connect();
    } catch (error) {
      await sleep(PAUSE_MS);
      throw error;
    }
    this.#client = client;
    return client;
  }

  #drop(): void {
    this.#client?.end().catch(() => {});
    this.#client = null;
  }
}
