import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { type Deferred, deferred } from '../../lib/engine/model/deferred.js';
import { PausableLoop } from '../support/pausable-loop.js';
import { message } from './messages.js';

/** What {@link OpenTransactions} writes to. */
export const OPEN_TABLES = `
  create table parcel(session int, id int, size int, pad text, primary key (session, id));
  alter table parcel alter pad set storage external`;

/** What a session of the source keeps of a transaction in memory before it is streamed. */
export const WORK_MEM = '64kB';

/** Sessions, whose transactions overlap. */
const SESSIONS = 2;
/** Between two transactions: a reader that is killed again and again has to keep up. */
const PAUSE_MS = 100;
/** Between two statements: the server sends a transaction in several parts. */
const STATEMENT_PAUSE_MS = 20;
const MESSAGE_EVERY = 3;
/** One of so many is rolled back. */
const UNDONE_EVERY = 5;
/** Content of a message that nobody must hear of. */
const UNHEARD = 0;

/**
 * Writes transactions that stay open over several statements, with savepoints, and are so large that the server sends them while they
 * run. Their numbers are below zero, and no two sessions have the same.
 */
export class OpenTransactions {
  readonly #loop: PausableLoop;
  /** Of one that stays open. */
  #gate: Deferred<void> | null = null;
  #written = deferred<void>();
  #open: Promise<void> = Promise.resolve();
  #unclearWanted = false;

  /**
   * @param session - from 0
   */
  private constructor(
    private readonly client: Client,
    private readonly session: number,
  ) {
    this.#loop = new PausableLoop((n) => this.#step(n), PAUSE_MS);
  }

  /** Begins paused. */
  static async create(
    connect: () => Promise<Client>,
  ): Promise<OpenTransactions[]> {
    const clients = await Promise.all(
      Array.from({ length: SESSIONS }, () => connect()),
    );
    return clients.map(
      (client, session) => new OpenTransactions(client, session),
    );
  }

  resume(): void {
    this.#gate?.resolve();
    void this.#open.then(() => this.#loop.resume());
  }

  /** Resolves when no transaction runs. */
  async pause(): Promise<void> {
    this.#gate?.resolve();
    await this.#open;
    await this.#loop.pause();
  }

  async stop(): Promise<void> {
    this.#gate?.resolve();
    await this.#open;
    await this.#loop.stop();
  }

  /** Writes a transaction, while it is paused, that stays open until it goes on. Resolves when only its end is missing. */
  async open(): Promise<void> {
    this.#gate = deferred();
    this.#written = deferred();
    this.#open = this.#loop.once();
    await this.#written.promise;
  }

  /** Sends a message with the next savepoint that is rolled back. */
  makeUnclear(): void {
    this.#unclearWanted = true;
  }

  async #step(n: number): Promise<void> {
    const { client } = this;
    try {
      for (const statement of this.#statements(n)) {
        await client.query(statement);
        await sleep(STATEMENT_PAUSE_MS);
      }
      this.#written.resolve();
      await this.#gate?.promise;
      await client.query(n % UNDONE_EVERY === 0 ? 'rollback' : 'commit');
    } catch {
      await client.query('rollback');
    } finally {
      this.#gate = null;
      this.#written.resolve();
    }
  }

  #statements(n: number): readonly string[] {
    const { session } = this;
    const id = -(n * SESSIONS + session);
    const tells = n % MESSAGE_EVERY === 0;
    const unclear = this.#unclearWanted;
    this.#unclearWanted = false;
    const put = (first: number, last: number): string =>
      `insert into parcel select ${session}, g, ${n}, repeat(md5('${n}' || g), 384) from generate_series(${first}, ${last}) g`;
    const change = (what: string, every: number): string =>
      `${what} where session = ${session} and id % ${every} = 0`;
    return [
      `begin; delete from parcel where session = ${session}; insert into journal values (${id}, ${tells}, false)`,
      // A row after it: no savepoint that is rolled back later may have sent it.
      ...(tells ? [message(id, true)] : []),
      put(1, 6),
      'savepoint a',
      put(7, 12),
      ...(unclear ? [message(UNHEARD, true)] : []),
      'rollback to a',
      `savepoint b; ${change('update parcel set id = -id', 3)}`,
      `savepoint c; ${change('delete from parcel', 4)}`,
      `rollback to c; release b; ${change('update parcel set size = -size', 2)}`,
      put(13, 18),
    ];
  }
}
