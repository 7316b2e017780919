import { type Lsn, parseLsn } from '../../lib/engine/model/lsn.js';
import type { SuiteServer } from './suite.js';
import type { TestDatabase } from './test-database.js';

/** Where changes come from and where a sink writes: two databases of one server. */
export interface SourceAndTarget {
  readonly source: TestDatabase;
  readonly target: TestDatabase;
}

/**
 * Two fresh databases for the running test. The source has the table `t` and the publication `p`, unless `schema` says
 * otherwise.
 */
export async function sourceAndTarget(
  suite: SuiteServer,
  schema = 'create table t(id int primary key, v text); create publication p for table t',
): Promise<SourceAndTarget> {
  const source = await suite.database();
  const target = await suite.database('target');
  await source.query(schema);
  return { source, target };
}

/**
 * The end of the WAL as a stream reaches it. At the start of a page, the insert position is one page header further and is
 * reached only by the next record.
 */
export async function flushedLsn(database: TestDatabase): Promise<Lsn> {
  const [row] = await database.query<{ lsn: string }>(
    'select pg_current_wal_flush_lsn() as lsn',
  );
  const lsn = parseLsn(row?.lsn ?? '');
  if (lsn === null) throw new Error('The server gave no position.');
  return lsn;
}

/** Writes WAL that concerns no publication, ends its segment, and gives the end. */
export async function writeNoise(
  database: TestDatabase,
  rows = 2_000,
): Promise<Lsn> {
  await database.query('create table if not exists noise(id int, pad text)');
  await database.query(
    `insert into noise select g, repeat('x', 500) from generate_series(1, ${rows}) g`,
  );
  await database.query('select pg_switch_wal()');
  return flushedLsn(database);
}
