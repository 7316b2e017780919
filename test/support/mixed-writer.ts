import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import type { TestDatabase } from './test-database.js';

/** Tables that {@link MixedWriter} writes to. */
export const MIXED_TABLES = `
  create table account(id int primary key, name text, balance numeric not null default 0, note text);
  alter table account alter note set storage external;
  create table entry(account int, seq int, amount numeric, primary key (account, seq));
  create table event(kind text, detail text);
  alter table event replica identity full`;

/** Between two transactions: a reader that is killed again and again has to keep up. */
const PAUSE_MS = 15;

/** Statements of one transaction. Everything it writes depends on `n` alone, so that a run can be repeated. */
export function mixedStatements(n: number): readonly string[] {
  const account = n % 97;
  const other = (n * 31) % 97;
  switch (n % 10) {
    case 0:
    case 1:
    case 2:
      return [
        `insert into account values (${account}, 'n${n}', ${n}.10, repeat('x', 9000))
           on conflict (id) do update set name = excluded.name`,
        `insert into entry values (${account}, ${n}, ${n}.5)`,
      ];
    case 3:
    case 4:
      return [
        `update account set balance = balance + ${n} where id in (${account}, ${other})`,
        `insert into event values ('moved', ${n % 20 === 3 ? 'null' : `'${n}'`})`,
      ];
    case 5:
      return [`update account set id = id + 1000 where id = ${account}`];
    case 6:
      return [
        `delete from entry where account = ${account}`,
        `delete from account where id in (${other}, ${account + 1000})`,
      ];
    case 7:
      return [
        'savepoint a',
        `insert into entry select ${other}, -${n} * 10 - g, g from generate_series(0, 9) g`,
        'rollback to a',
        `insert into entry select ${account}, -${n} * 10 - g, g from generate_series(0, 9) g`,
      ];
    case 8:
      return [
        `delete from event where ctid in (select ctid from event limit 1)`,
        `insert into event select 'bulk', g::text from generate_series(1, 3) g`,
      ];
    default:
      return n % 100 === 99
        ? ['truncate event']
        : [`insert into event values ('undone', '${n}')`, 'select 1 / 0'];
  }
}

/** Writes inserts, updates, key changes, deletes, truncates, savepoints and rollbacks until it is stopped. */
export class MixedWriter {
  #stopped = false;
  readonly #done: Promise<number>;

  private constructor(private readonly client: Client) {
    this.#done = this.#run();
  }

  static async start(source: TestDatabase): Promise<MixedWriter> {
    return new MixedWriter(await source.connect());
  }

  /** Ends after the running transaction; gives the number of transactions. */
  stop(): Promise<number> {
    this.#stopped = true;
    return this.#done;
  }

  async #run(): Promise<number> {
    let n = 0;
    while (!this.#stopped) {
      n += 1;
      try {
        await this.client.query(
          `begin; ${mixedStatements(n).join('; ')}; commit`,
        );
      } catch {
        await this.client.query('rollback');
      }
      await sleep(PAUSE_MS);
    }
    return n;
  }
}
