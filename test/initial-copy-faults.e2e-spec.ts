import { PublicationSet } from '../lib/engine/server/capture/publication-set.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConnectionFault } from '../lib/engine/model/connection-fault.js';
import { judgeError } from '../lib/engine/server/error-classes.js';
import { readPublishedTables } from '../lib/engine/server/published-tables.js';
import type { CopySession } from '../lib/engine/snapshot/copy-session.js';
import { openInSnapshot } from '../lib/engine/snapshot/initial/adopted-snapshot.js';
import { lockTables } from '../lib/engine/snapshot/initial/table-locks.js';
import {
  copyBackends,
  Copying,
  copyGone,
  exportSnapshot,
} from './support/initial-copying.js';
import { terminateBackend } from './support/logical-slot.js';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();
const ROWS = 50_000;

/** A database with tables `a` and `b` of {@link ROWS} rows, a partitioned one, and the publication `p` of all. */
async function filled(): Promise<TestDatabase> {
  const source = await suite.database();
  await source.query(
    `create table a (id int primary key, v text); create table b (id int primary key, v text);
     create table r (id int primary key) partition by list (id); create table r1 partition of r for values in (1);
     insert into a select g, 'v' from generate_series(1, ${ROWS}) g;
     insert into b select g, 'v' from generate_series(1, ${ROWS}) g;
     insert into r values (1);
     create publication q for table a, b;
     create publication p for all tables with (publish_via_partition_root = true)`,
  );
  return source;
}

async function copying(source: TestDatabase): Promise<Copying> {
  return new Copying(source, await exportSnapshot(source));
}

/** What a copy fails with, once it has let go of everything. */
async function failure(source: TestDatabase, work: Promise<unknown>) {
  const error: unknown = await work.then(
    () => 'nothing',
    (reason: unknown) => reason,
  );
  await copyGone(source);
  return error;
}

describe('a table that was altered before the copy has locked it', () => {
  it.each([
    ['rewritten', 'alter table b alter id type bigint'],
    ['emptied', 'truncate b'],
    ['emptied in a partition', 'truncate r1'],
    ['dropped', 'drop table b'],
    ['made anew', 'drop table b; create table b (id int primary key, v text)'],
    ['renamed', 'alter table b rename to c'],
    ['exchanged', 'alter table a rename to c; alter table b rename to a'],
    [
      'given other names for its columns',
      'alter table b rename v to w; alter table b add v text',
    ],
    ['moved to another schema', 'create schema s; alter table b set schema s'],
    ['given another partition', 'create table r2 partition of r default'],
  ])('%s asks for a new slot', async (_what, sql) => {
    const source = await filled();
    const copy = await copying(source);
    await source.query(sql);
    const error = await failure(source, copy.run({ parallelTables: 2 }));
    expect(error).toBeInstanceOf(ConnectionFault);
    expect(String(error)).toContain('was altered after');
    expect(copy.pages).toEqual([]);
  });

  it('asks for one too when a publication has changed', async () => {
    const source = await filled();
    const copy = await copying(source);
    await source.query('alter publication q drop table b');
    const error = await failure(source, copy.run({ capture: new PublicationSet(['q']) }));
    expect(error).toBeInstanceOf(ConnectionFault);
    expect(copy.pages).toEqual([]);
  });

  it('asks for one too when the copy has waited for it', async () => {
    const source = await filled();
    const copy = await copying(source);
    const writer = await source.connect();
    await writer.query('begin; truncate b');
    const failed = failure(source, copy.run());
    await waiting(source, '%');
    await writer.query('commit');
    expect(await failed).toBeInstanceOf(ConnectionFault);
    expect(copy.pages).toEqual([]);
  });

  it('but not when nothing came of it, nor for rows', async () => {
    const source = await filled();
    const copy = await copying(source);
    await source.query('begin; truncate b; rollback');
    await source.query('delete from b');
    await source.query('vacuum b');
    await source.query('analyze b');
    await copy.run();
    expect(copy.records('public.b')).toHaveLength(ROWS);
  });
});

it.each([
  'alter table b alter id type bigint',
  'truncate b',
  'drop table b',
  'truncate r',
])('a table cannot be altered while another is read: %s waits', async (sql) => {
  const source = await filled();
  const copy = await copying(source);
  let altering: Promise<unknown> = Promise.resolve();
  let altered = false;
  copy.during = async ({ relation, firstForTable }) => {
    expect(altered).toBe(false);
    if (relation !== 'public.a' || !firstForTable) return;
    altering = source.query(sql).then(() => (altered = true));
    await waiting(source, `${sql.slice(0, 5)}%`);
  };
  await copy.run();
  await altering;
  expect(copy.records('public.b')).toHaveLength(ROWS);
  expect(copy.records('public.r')).toHaveLength(1);
});

describe('a copy that fails', () => {
  it('because a reading connection is lost, is tried again', async () => {
    const source = await filled();
    const copy = await copying(source);
    copy.during = async ({ firstForTable }) => {
      if (!firstForTable) return;
      const [reader] = await copyBackends(source);
      if (reader !== undefined) await terminateBackend(source, reader);
    };
    const error = await failure(source, copy.run());
    expect(judgeError(error, 'streaming').class).toBe('transient');
  });

  it('because the snapshot is gone before it was adopted, is tried again (K03)', async () => {
    const source = await filled();
    const exported = await exportSnapshot(source);
    const copy = new Copying(source, exported);
    exported.session.destroy();
    await waitFor(async () => {
      const sessions = await source.query(
        "select from pg_stat_activity where backend_type = 'walsender' and datname = current_database()",
      );
      return sessions.length === 0;
    });
    const error = await failure(source, copy.run());
    expect(error).toBeInstanceOf(ConnectionFault);
    expect(copy.pages).toEqual([]);
  });

  it('because its sink rejects, says why, stops the other tables and waits for their deliveries', async () => {
    const source = await filled();
    const copy = await copying(source);
    const reason = new Error('the sink says no');
    const other = deferred();
    copy.during = async ({ relation }) => {
      await waitFor(() => copy.running === 2);
      if (relation === 'public.a') throw reason;
      await other.promise;
    };
    const failed = copy
      .run({ parallelTables: 2 })
      .catch((error: unknown) => error);
    await waitFor(() => copy.pages.length === 2 && copy.running === 1);
    await copyGone(source);
    expect(copy.running).toBe(1);
    other.resolve();
    expect(await failed).toBe(reason);
    expect(copy.pages).toHaveLength(2);
    expect(copy.told).toHaveLength(1);
  });

  it('because its sink found a table of its own missing, is not taken for an altered source', async () => {
    const source = await filled();
    const copy = await copying(source);
    copy.during = async () => {
      await source.query('select from missing');
    };
    const error = await failure(source, copy.run());
    expect(error).toMatchObject({ code: '42P01' });
  });

  it.each([1, 2])(
    'because it is aborted, ends within a moment (page %i)',
    async (page) => {
      const source = await filled();
      const copy = await copying(source);
      copy.during = () => {
        if (copy.pages.length === page) copy.abort.abort();
      };
      const error = await failure(source, copy.run({ parallelTables: 2 }));
      expect(error).toBeInstanceOf(Error);
      expect(copy.told).toHaveLength(1);
    },
  );

  it('because it is aborted before it has begun, opens nothing', async () => {
    const source = await filled();
    const copy = await copying(source);
    copy.abort.abort();
    expect(await failure(source, copy.run())).toBeInstanceOf(Error);
  });

  it('because it is aborted while it waits for a lock, leaves no session waiting', async () => {
    const source = await filled();
    const copy = await copying(source);
    const writer = await source.connect();
    await writer.query('begin; truncate b');
    const failed = failure(source, copy.run());
    await waiting(source, '%');
    copy.abort.abort();
    expect(await failed).toBeInstanceOf(Error);
    await writer.query('rollback');
  });
});

it('a session does not wait for a table that somebody wants to alter, who waits for another session of the copy', async () => {
  const source = await filled();
  const { snapshotName } = await exportSnapshot(source);
  const target = {
    connection: { ...source.connection },
    applicationName: 'copier',
    signal: new AbortController().signal,
  };
  const sessions: CopySession[] = [];
  for (let index = 0; index < 2; index++)
    sessions.push(await openInSnapshot(target, snapshotName));
  onTestFinished(() => sessions.forEach((session) => session.destroy()));
  const [first, second] = sessions.map(({ commands }) => commands);
  const tables = await readPublishedTables(present(first), new PublicationSet(['q']));
  await lockTables(present(first), tables, 0);
  const altering = source.query('truncate b');
  await waiting(source, 'truncate%');
  await expect(lockTables(present(second), tables, 50)).rejects.toThrow(
    'about to be altered',
  );
  for (const session of sessions) await session.close();
  await altering;
});

it('a copy goes on without the session that has exported the snapshot, and beyond time-outs of the server (K03)', async () => {
  const source = await filled();
  await source.query(
    `alter database "${source.name}" set idle_in_transaction_session_timeout = '100ms';
     alter database "${source.name}" set statement_timeout = '100ms'`,
  );
  const exported = await exportSnapshot(source);
  const copy = new Copying(source, exported);
  copy.during = async ({ firstForTable, relation }) => {
    if (!firstForTable) return;
    exported.session.destroy();
    if (relation === 'public.a')
      await source.query('select pg_sleep(0.09), pg_sleep(0)');
  };
  await copy.run({ parallelTables: 2 });
  expect(copy.records('public.a')).toHaveLength(ROWS);
  expect(copy.records('public.b')).toHaveLength(ROWS);
  await copyGone(source);
});

/** Waits until a statement waits for a lock. */
async function waiting(source: TestDatabase, like: string): Promise<void> {
  await waitFor(
    async () => {
      const rows = await source.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query ilike $1",
        [like],
      );
      return rows.length > 0;
    },
    { message: 'a statement to wait for a lock' },
  );
}
