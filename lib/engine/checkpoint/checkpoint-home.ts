import type { CheckpointHome } from '../model/checkpoint.js';
import type { CheckpointLocation } from './checkpoint-location.js';
import { fetchRow, presentTextIn } from './checkpoint-query.js';
import type { CheckpointQuery } from './checkpoint-query.js';

/** Asks the database of a checkpoint table which one it is. */
export async function readCheckpointHome(
  query: CheckpointQuery,
  { oid, quotedName }: CheckpointLocation,
): Promise<CheckpointHome> {
  const facts = await fetchRow(
    query,
    `SELECT current_database()::text AS database,
  has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')::text AS permitted`,
    [],
  );
  return {
    // Every role may call it unless somebody revoked that. Asked apart: a call that is not permitted fails the whole query.
    systemIdentifier:
      presentTextIn(facts, 'permitted') === 'true'
        ? await readSystemIdentifier(query)
        : null,
    database: presentTextIn(facts, 'database'),
    relationOid: oid,
    quotedName,
  };
}

async function readSystemIdentifier(query: CheckpointQuery): Promise<string> {
  const row = await fetchRow(
    query,
    'SELECT system_identifier::text AS server FROM pg_catalog.pg_control_system()',
    [],
  );
  return presentTextIn(row, 'server');
}
