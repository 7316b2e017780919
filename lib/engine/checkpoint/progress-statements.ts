import { UNKNOWN_TIMELINE } from '../server/timeline.js';
import { durably, returning } from './checkpoint-statements.js';

/**
 * Writes of the progress of a snapshot, which leave the positions of the row alone. Each goes by what its writer knows of the row, and writes nothing when
 * somebody else has moved it. They return `server`: the system identifier when the row was written, else NULL.
 */
export interface ProgressStatements {
  /** Where neither a commit nor progress is stored: `$1` slot name, `$2` system identifier, `$3` timeline, `$4` progress. */
  readonly begin: string;
  /** Where something is: like `begin`, `$5` is the progress and `$6` the commit position that it holds so far, each or NULL. */
  readonly move: string;
}

/**
 * For the row of a sink. A transaction that was applied since its writer has read the row makes what that has read of the tables too old, so
 * the commit position decides too. That the progress is there already is no obstacle: who writes it a second time has lost the answer.
 *
 * @param table the table's name, quoted and with its schema
 */
export function progressStatements(table: string): ProgressStatements {
  return {
    begin: returning(`${insertion(table)}
  ON CONFLICT (slot_name) DO UPDATE SET snapshot_progress = excluded.snapshot_progress,
    timeline = excluded.timeline, updated_at = now()
  WHERE ${isOurs('excluded.system_identifier', 'excluded.timeline')} AND stored.commit_lsn IS NULL
    AND coalesce(stored.snapshot_progress = excluded.snapshot_progress, true)`),

    move: returning(`${change(table)} AND stored.commit_lsn IS NOT DISTINCT FROM $6::text::pg_lsn
    AND (stored.snapshot_progress IS NOT DISTINCT FROM $5::text OR stored.snapshot_progress = $4::text)`),
  };
}

/**
 * For the row of the library: by all that the row holds, as its other writes.
 *
 * @param table the table's name, quoted and with its schema
 */
export function storeProgressStatements(table: string): ProgressStatements {
  return {
    begin: durably(`${insertion(table)}
  ON CONFLICT (slot_name) DO NOTHING`),

    move: durably(`${change(table)} AND stored.commit_lsn IS NOT DISTINCT FROM $6::text::pg_lsn
    AND stored.confirmed_lsn IS NOT DISTINCT FROM $7::text::pg_lsn
    AND stored.snapshot_progress IS NOT DISTINCT FROM $5::text`),
  };
}

function insertion(table: string): string {
  return `INSERT INTO ${table} AS stored (slot_name, system_identifier, timeline, snapshot_progress)
  VALUES ($1::text, $2::text, $3::text::integer, $4::text)`;
}

function change(table: string): string {
  return `UPDATE ${table} AS stored SET snapshot_progress = $4::text, timeline = $3::text::integer, updated_at = now()
  WHERE stored.slot_name = $1::text AND ${isOurs('$2::text', '$3::text::integer')}`;
}

function isOurs(systemIdentifier: string, timeline: string): string {
  return `stored.system_identifier = ${systemIdentifier}
    AND (stored.timeline <= ${timeline} OR ${timeline} = ${UNKNOWN_TIMELINE})`;
}
