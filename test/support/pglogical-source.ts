import { createNode } from './plugin-frames.js';
import { sourceAndTarget, type SourceAndTarget } from './source-and-target.js';
import type { SuiteServer } from './suite.js';

/** Two fresh databases for the running test, of which the source is a node of pglogical with tables in the set `default`. */
export async function pglogicalSource(
  suite: SuiteServer,
  schema = 'create table t(id int primary key, v text)',
  tables: readonly string[] = ['t'],
): Promise<SourceAndTarget> {
  const both = await sourceAndTarget(suite, schema);
  await createNode(both.source);
  for (const table of tables)
    await both.source.query(
      `select pglogical.replication_set_add_table('default', $1)`,
      [table],
    );
  return both;
}
