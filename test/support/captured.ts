import type {
  DecoderName,
  DecoderOptions,
  SchemaAndTable,
} from '../../lib/engine/options/decoder-options.js';
import { createNode } from './plugin-frames.js';
import type { TestDatabase } from './test-database.js';

/** Every decoder to its output plugin. */
export const OUTPUT_PLUGINS = {
  pgoutput: 'pgoutput',
  wal2json: 'wal2json',
  pglogical: 'pglogical_output',
} as const satisfies Record<DecoderName, string>;

/** The options that capture the tables: of the publication `p` and of the replication set `default`, those that they have. */
export function capturedBy(
  decoder: DecoderName,
  tables: readonly SchemaAndTable[],
): DecoderOptions {
  switch (decoder) {
    case 'pgoutput':
      return { decoder, publication: 'p' };
    case 'wal2json':
      return { decoder, tables };
    case 'pglogical':
      return { decoder, replicationSets: 'default' };
  }
}

/** @throws when there is no such decoder */
export function decoderNamed(text: string): DecoderName {
  for (const name of ['pgoutput', 'wal2json', 'pglogical'] as const)
    if (name === text) return name;
  throw new Error('There is no such decoder.');
}

/** Puts all tables of the schema `public` into the replication set `default`. Before a slot is made: none that is older can be read. */
export async function replicateAllTables(
  database: TestDatabase,
): Promise<void> {
  await createNode(database);
  await database.query(
    `select pglogical.replication_set_add_all_tables('default', '{public}')`,
  );
}
