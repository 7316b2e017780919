import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  compareTables,
  type Difference,
  NO_DIFFERENCE,
} from './support/compare-tables.js';
import { currentLsn, readSlot } from './support/logical-slot.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TestApplication } from './support/test-application.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

const ROWS = 20_000;
const TABLE = 'create table t(id int primary key, v text)';
/** Each page waits this long, so that a kill falls between two of them. */
const PAGE_MS = '40';
/** A transaction comes about that often: a sink that falls behind would hold up the pages of an incremental snapshot. */
const WRITE_MS = 10;
const EXACT = { ...NO_DIFFERENCE, slots: 1 };

type Mode = 'initial' | 'incremental';

/** Two applications that were started at the same moment on a populated source, which is written to meanwhile. */
class Race {
  readonly #stop = new AbortController();
  readonly #writer: Promise<void>;

  private constructor(
    readonly source: TestDatabase,
    readonly target: TestDatabase,
    readonly both: readonly TestApplication[],
  ) {
    this.#writer = this.#write();
    onTestFinished(() => this.#stopWriting());
  }

  static async start(mode: Mode): Promise<Race> {
    const { source, target } = await sourceAndTarget(
      suite,
      `${TABLE}; insert into t select g, 'v' || g from generate_series(1, ${ROWS}) g; analyze t;
       create publication p for table t`,
    );
    await target.query(
      `${TABLE}; create table pages(process int, first boolean, ids int[])`,
    );
    const env = {
      SOURCE_URL: source.url,
      TARGET_URL: target.url,
      SLOT: `slot_${source.name}`,
      SNAPSHOT: mode,
      PAGE_MS,
    };
    return new Race(
      source,
      target,
      [1, 2].map(() => TestApplication.start('snapshot', env)),
    );
  }

  /** The one that copies, and the one that stands by. */
  async roles(): Promise<{ leader: TestApplication; other: TestApplication }> {
    const leader = await waitFor(
      () => this.both.find(({ said }) => said.includes('page 1')),
      { timeout: 30_000, message: 'one of them to copy' },
    );
    const other = present(this.both.find((each) => each !== leader));
    await other.says('standby');
    return { leader, other };
  }

  /** Changes, deletes, renumbers and inserts rows everywhere in the table. */
  async #write(): Promise<void> {
    for (let n = 1; !this.#stop.signal.aborted; n += 1) {
      const id = (n * 7_919) % ROWS;
      const old = `(select min(id) from t where id >= ${id})`;
      const changed = [
        `update t set v = 'changed ${n}' where id = ${old}`,
        `delete from t where id = ${old}`,
        `update t set id = ${ROWS + n} where id = ${old}`,
        `insert into t values (${2 * ROWS + n}, 'new')`,
      ];
      await this.source.query(changed[n % changed.length] ?? '');
      await sleep(WRITE_MS);
    }
  }

  async #stopWriting(): Promise<void> {
    this.#stop.abort();
    await this.#writer;
  }

  /** Stops the writer and waits until the copy has everything; says how far it is from its source, and how many slots there are. */
  async finish(
    application: TestApplication,
  ): Promise<Difference & { readonly slots: number }> {
    await application.says('copied', { timeout: 60_000 });
    await application.says('streaming');
    await this.#stopWriting();
    const end = await currentLsn(this.source);
    const { name } = this.source;
    await waitFor(
      async () =>
        ((await readSlot(this.source, `slot_${name}`))?.confirmedFlushLsn ??
          0n) >= end,
      { timeout: 30_000, message: 'the copy to catch up' },
    );
    const difference = await compareTables(this.source, this.target);
    return { ...difference, slots: await this.slots() };
  }

  async slots(): Promise<number> {
    const rows = await this.source.query(
      'select from pg_replication_slots where database = current_database()',
    );
    return rows.length;
  }

  /** Processes that have copied, calls that began the table, rows that came, and those that came again. */
  async copied(): Promise<{
    processes: number;
    firsts: number;
    rows: number;
    repeated: number;
  }> {
    const [row] = await this.target.query<{
      processes: number;
      firsts: number;
      rows: number;
      repeated: number;
    }>(
      `select count(distinct process)::int as processes, (count(*) filter (where first))::int as firsts,
         (select count(*)::int from pages, unnest(ids)) as rows,
         (select (count(*) - count(distinct id))::int from pages, unnest(ids) id) as repeated
       from pages`,
    );
    return present(row);
  }
}

/** Words that only trouble brings. */
function trouble({ said }: TestApplication): readonly string[] {
  return said.filter(
    (word) => word.startsWith('halt ') || word === 'reconnecting',
  );
}

describe.each<Mode>(['initial', 'incremental'])(
  'two applications with one slot and an %s snapshot',
  (mode) => {
    it('make one slot and one copy, and neither halts', async () => {
      const race = await Race.start(mode);
      const { leader, other } = await race.roles();
      expect(await race.finish(leader)).toEqual(EXACT);
      expect(await race.copied()).toMatchObject({
        processes: 1,
        firsts: 1,
        repeated: 0,
      });
      expect(race.both.flatMap(trouble)).toEqual([]);
      expect(other.said).not.toContain('page 1');
      // What was copied is not copied again by the one that takes over.
      const { rows } = await race.copied();
      await leader.kill();
      await other.says('streaming');
      await race.source.query("insert into t values (-1, 'behind')");
      await waitFor(
        async () =>
          (await race.target.query('select from t where id = -1')).length === 1,
      );
      expect((await race.copied()).rows).toBe(rows);
      expect(trouble(other)).toEqual([]);
    }, 90_000);
  },
);

describe('the application that is left when the other one is killed in the middle of', () => {
  it('an initial snapshot halts, and copies everything when it is told to begin anew', async () => {
    const race = await Race.start('initial');
    const { leader, other } = await race.roles();
    await leader.says('page 5');
    await leader.kill();
    await other.says('halt snapshot_incomplete');
    expect(await race.slots()).toBe(1);
    expect((await race.copied()).processes).toBe(1);
    await race.target.query('truncate pages');
    other.tell('begin anew');
    expect(await race.finish(other)).toEqual(EXACT);
    expect(await race.copied()).toMatchObject({
      processes: 1,
      firsts: 1,
      repeated: 0,
    });
  }, 90_000);

  it('an incremental snapshot goes on behind its last page', async () => {
    const race = await Race.start('incremental');
    const { leader, other } = await race.roles();
    await leader.says('page 5');
    await leader.kill();
    expect(await race.finish(other)).toEqual(EXACT);
    const { rows, ...copied } = await race.copied();
    expect(copied).toEqual({ processes: 2, firsts: 1, repeated: 0 });
    expect(rows).toBeGreaterThan(ROWS * 0.8);
    expect(trouble(other)).toEqual([]);
  }, 90_000);
});
