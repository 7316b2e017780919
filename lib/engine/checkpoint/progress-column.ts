import { HaltError } from '../model/halt.js';
import type { CheckpointLocation } from './checkpoint-location.js';
import { fetchRow, presentTextIn } from './checkpoint-query.js';
import type { CheckpointQuery } from './checkpoint-query.js';

const LOOK_UP = `SELECT pg_catalog.pg_has_role(relowner, 'USAGE')::text AS owned,
  EXISTS (SELECT FROM pg_catalog.pg_attribute AS found
    WHERE found.attrelid = oid AND found.attname = 'snapshot_progress' AND found.attnum > 0 AND NOT found.attisdropped)::text AS present
FROM pg_catalog.pg_class WHERE oid = $1::text::oid`;

/**
 * Adds the column for the progress of a snapshot to a table that was made without. The owner is asked for first: libraries report a statement that was
 * refused in ways of their own.
 *
 * @throws {HaltError} `checkpoint/progress_column` when the role may not, with the statement
 */
export async function addProgressColumn(
  query: CheckpointQuery,
  { oid, quotedName }: CheckpointLocation,
): Promise<void> {
  const table = await fetchRow(query, LOOK_UP, [String(oid)]);
  if (presentTextIn(table, 'present') === 'true') return;
  const statement = `ALTER TABLE ${quotedName} ADD COLUMN IF NOT EXISTS snapshot_progress text`;
  if (presentTextIn(table, 'owned') !== 'true') {
    throw new HaltError('checkpoint/progress_column', {
      detail: `the role does not own ${quotedName}; run: ${statement}`,
    });
  }
  await query(statement, []);
}
