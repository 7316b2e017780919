import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { createNode } from './plugin-frames.js';
import { type SourceAndTarget, sourceAndTarget } from './source-and-target.js';
import type { SuiteServer } from './suite.js';
import type { TestDatabase } from './test-database.js';

/** The decoders of plugins that a server does not bring along. */
export const PLUGIN_DECODERS = ['wal2json', 'pglogical'] as const;

/** Options that capture tables of the schema `public` by one of them; by pglogical in the set `default`. */
export function capturedBy(
  decoder: (typeof PLUGIN_DECODERS)[number],
  tables: readonly string[] = ['t'],
): Partial<PipelineOptions> {
  return decoder === 'wal2json'
    ? { decoder, tables: tables.map((table) => ['public', table]) }
    : { decoder, replicationSets: 'default' };
}

/** Like {@link sourceAndTarget}, with the tables in the publication `p` and in the replication set `default`. */
export async function pluginSource(
  suite: SuiteServer,
  schema = 'create table t(id int primary key, v text)',
  tables: readonly string[] = ['t'],
): Promise<SourceAndTarget> {
  const both = await sourceAndTarget(
    suite,
    `${schema}; create publication p for table ${tables.join(', ')}`,
  );
  await createNode(both.source);
  for (const table of tables) await addTable(both.source, 'default', table);
  return both;
}

/** What a replication set may leave out of a table. */
export interface Part {
  readonly columns?: readonly string[];
  readonly filter?: string;
}

/** Adds a table to a replication set. */
export async function addTable(
  source: TestDatabase,
  set: string,
  table: string,
  { columns, filter }: Part = {},
): Promise<void> {
  await source.query(
    'select pglogical.replication_set_add_table(set_name := $1, relation := $2, columns := $3, row_filter := $4)',
    [set, table, columns ?? null, filter ?? null],
  );
}
