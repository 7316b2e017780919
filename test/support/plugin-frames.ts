import type { TestDatabase } from './test-database.js';

/** Options of an output plugin, by name. */
export type PluginOptions = Readonly<Record<string, string>>;

/** What the decoder of wal2json asks for. */
export const WAL2JSON_OPTIONS: PluginOptions = {
  'format-version': '2',
  'include-transaction': 'true',
  'include-lsn': 'true',
  'include-xids': 'true',
  'include-timestamp': 'true',
  'include-types': 'true',
  'include-type-oids': 'true',
  'include-pk': 'true',
  'numeric-data-types-as-string': 'true',
};

/**
 * What the decoder of pglogical asks for; the replication sets come to it. Without the origins it would leave out transactions that
 * another server began.
 */
export const PGLOGICAL_OPTIONS: PluginOptions = {
  startup_params_format: '1',
  min_proto_version: '1',
  max_proto_version: '1',
  expected_encoding: 'UTF8',
  'pglogical.forward_origins': 'all',
};

/** Makes the database a node of pglogical, which it must be before its slot is made. */
export async function createNode(database: TestDatabase): Promise<void> {
  await database.query('create extension pglogical');
  await database.query(
    `select pglogical.create_node('node', 'dbname=' || current_database())`,
  );
}

/** The frames that a slot has now, as a stream would bring them. They stay in the slot. */
export async function peekFrames(
  database: TestDatabase,
  slotName: string,
  options: PluginOptions,
): Promise<Buffer[]> {
  const rows = await database.query<{ data: Buffer }>(
    'select data from pg_logical_slot_peek_binary_changes($1, null, null, variadic $2::text[])',
    [slotName, Object.entries(options).flat()],
  );
  return rows.map(({ data }) => data);
}
