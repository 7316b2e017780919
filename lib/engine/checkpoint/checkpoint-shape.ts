import { HaltError } from '../model/halt.js';
import { quoteLiteral } from '../server/identifiers.js';
import type { CheckpointLocation } from './checkpoint-location.js';
import { fetchRow, textIn } from './checkpoint-query.js';
import type { CheckpointQuery } from './checkpoint-query.js';

/** What the statements need, as `createCheckpointTable` makes it. */
const COLUMNS = {
  slot_name: 'text',
  commit_lsn: 'pg_lsn',
  confirmed_lsn: 'pg_lsn',
  system_identifier: 'text',
  timeline: 'integer',
  relations: 'jsonb',
  updated_at: 'timestamp with time zone',
} as const;

/** What they need besides where the progress of a snapshot is stored. */
const PROGRESS_COLUMN = { snapshot_progress: 'text' } as const;

/** What is missing or another type, as one text; NULL when all is there. A table may have more columns than are needed. */
const faultsIn = (columns: Readonly<Record<string, string>>): string =>
  `SELECT string_agg(wanted.name || coalesce(' is ' || format_type(found.atttypid, found.atttypmod) || ', not ' || wanted.type,
    ' (' || wanted.type || ') is missing'), '; ' ORDER BY wanted.name)::text AS faults,
  EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute key ON key.attrelid = i.indrelid AND key.attnum = i.indkey[0]
    WHERE i.indrelid = $1::text::oid AND key.attname = 'slot_name' AND i.indnkeyatts = 1
      AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL)::text AS keyed
FROM (VALUES ${Object.entries(columns)
    .map(([name, type]) => `(${quoteLiteral(name)}, ${quoteLiteral(type)})`)
    .join(', ')}) AS wanted (name, type)
LEFT JOIN pg_catalog.pg_attribute AS found
  ON found.attrelid = $1::text::oid AND found.attname = wanted.name AND found.attnum > 0 AND NOT found.attisdropped
WHERE found.atttypid IS DISTINCT FROM wanted.type::regtype`;

/**
 * Makes sure that a table which was there before can hold checkpoints.
 *
 * @throws {HaltError} `checkpoint_store/schema`, with the columns and their types
 */
export function requireCheckpointShape(
  query: CheckpointQuery,
  location: CheckpointLocation,
): Promise<void> {
  return requireColumns(query, location, COLUMNS);
}

/** Makes sure in the same way that it can hold the progress of a snapshot. */
export function requireProgressShape(
  query: CheckpointQuery,
  location: CheckpointLocation,
): Promise<void> {
  return requireColumns(query, location, PROGRESS_COLUMN);
}

async function requireColumns(
  query: CheckpointQuery,
  { oid, quotedName }: CheckpointLocation,
  columns: Readonly<Record<string, string>>,
): Promise<void> {
  const row = await fetchRow(query, faultsIn(columns), [String(oid)]);
  const faults = textIn(row, 'faults');
  const detail =
    faults ??
    (textIn(row, 'keyed') === 'true'
      ? null
      : 'slot_name has no primary key or unique index of its own');
  if (detail === null) return;
  throw new HaltError('checkpoint_store/schema', {
    detail: `in ${quotedName}: ${detail}`,
  });
}
