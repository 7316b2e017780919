import { UNKNOWN_TIMELINE } from '../server/timeline.js';

/** The statements of one checkpoint table. Positions and numbers travel as text and are cast here. */
export interface CheckpointStatements {
  /** `$1` slot name. Returns `server`, `timeline`, `committed`, `confirmed`, `relations`, `progress`; all NULL when there is no row. */
  readonly load: string;
  /**
   * `$1` slot name, `$2` system identifier, `$3` timeline, `$4` shapes that changed or NULL,
   * `$5` commit position, `$6` its end or NULL, `$7` commit position of the first transaction of those that end there: it
   * decides. Returns `server`: the system identifier when the row was written, else NULL.
   */
  readonly advance: string;
  /** `$1` slot name, `$2` system identifier, `$3` timeline, `$4` shapes like `advance`, `$5` boundary. Returns `server` like `advance`. */
  readonly confirm: string;
  /** `$1` slot name, `$2` system identifier, `$3` commit position, `$4` shapes like `advance`. Returns `server` like `advance`. */
  readonly retract: string;
}

/** @param table the table's name, quoted and with its schema */
export function checkpointStatements(table: string): CheckpointStatements {
  return {
    // A table that was made by an earlier version may lack the column for progress, which only snapshots need.
    load: `SELECT stored.system_identifier AS server, stored.timeline::text AS timeline,
  stored.commit_lsn::text AS committed, stored.confirmed_lsn::text AS confirmed,
  stored.relations::text AS relations, to_jsonb(stored.*) ->> 'snapshot_progress' AS progress
FROM (VALUES ($1::text)) AS asked (slot_name)
LEFT JOIN ${table} AS stored ON stored.slot_name = asked.slot_name`,

    // A transaction at the stored boundary is still to come, one at the stored commit position is not: >= and >.
    advance: upsert(table, {
      columns: 'commit_lsn, confirmed_lsn',
      values: '$5::text::pg_lsn, $6::text::pg_lsn',
      assignments: `commit_lsn = excluded.commit_lsn,
    confirmed_lsn = greatest(stored.confirmed_lsn, excluded.confirmed_lsn)`,
      isNew: `coalesce($7::text::pg_lsn > stored.commit_lsn, true)
    AND coalesce($7::text::pg_lsn >= stored.confirmed_lsn, true)`,
    }),

    confirm: upsert(table, {
      columns: 'confirmed_lsn',
      values: '$5::text::pg_lsn',
      assignments: 'confirmed_lsn = excluded.confirmed_lsn',
      // At the stored boundary there may still be shapes to store.
      isNew: `coalesce(excluded.confirmed_lsn > stored.confirmed_lsn
      OR excluded.confirmed_lsn = stored.confirmed_lsn AND excluded.relations IS NOT NULL, true)`,
    }),

    // The positions before it are gone, but nothing commits between its own and the one below.
    retract:
      returning(`UPDATE ${table} AS stored SET commit_lsn = stored.commit_lsn - 1,
    relations = ${merged('$4::text::jsonb')}, updated_at = now()
  WHERE stored.slot_name = $1::text AND stored.system_identifier = $2::text
    AND stored.commit_lsn = $3::text::pg_lsn`),
  };
}

/**
 * Writes of the library's own checkpoint. Each goes by the positions that its writer knows of, and writes nothing when
 * somebody else has moved the row.
 */
export interface StoreStatements extends Pick<CheckpointStatements, 'load'> {
  /**
   * Where there is no row: `$1` slot name, `$2` system identifier, `$3` timeline, `$4` shapes that changed or NULL, `$5` commit
   * position or NULL, `$6` boundary or NULL. Returns `server`: the system identifier when the row was written, else NULL.
   */
  readonly begin: string;
  /** Where there is one: like `begin`, and `$7` and `$8` are the positions that it holds so far. */
  readonly move: string;
}

/** @param table the table's name, quoted and with its schema */
export function storeStatements(table: string): StoreStatements {
  return {
    load: checkpointStatements(table).load,

    begin:
      durably(`INSERT INTO ${table} AS stored (slot_name, system_identifier, timeline, relations, commit_lsn, confirmed_lsn)
  VALUES ($1::text, $2::text, $3::text::integer, $4::text::jsonb, $5::text::pg_lsn, $6::text::pg_lsn)
  ON CONFLICT (slot_name) DO NOTHING`),

    move: durably(`UPDATE ${table} AS stored SET commit_lsn = $5::text::pg_lsn, confirmed_lsn = $6::text::pg_lsn,
    timeline = $3::text::integer, relations = ${merged('$4::text::jsonb')}, updated_at = now()
  WHERE stored.slot_name = $1::text AND stored.system_identifier = $2::text
    AND (stored.timeline <= $3::text::integer OR $3::text::integer = ${UNKNOWN_TIMELINE})
    AND stored.commit_lsn IS NOT DISTINCT FROM $7::text::pg_lsn
    AND stored.confirmed_lsn IS NOT DISTINCT FROM $8::text::pg_lsn`),
  };
}

/**
 * The statement that creates the table.
 *
 * @param table the table's name, quoted and with its schema
 */
export function createCheckpointTable(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  slot_name text PRIMARY KEY,
  commit_lsn pg_lsn,
  confirmed_lsn pg_lsn,
  system_identifier text NOT NULL,
  timeline integer NOT NULL,
  relations jsonb,
  snapshot_progress text,
  updated_at timestamptz NOT NULL DEFAULT now()
)`;
}

interface Upsert {
  readonly columns: string;
  readonly values: string;
  readonly assignments: string;
  readonly isNew: string;
}

/** The stored shapes with a patch; as they are, and not even looked at, without one. What is no object is replaced. */
function merged(patch: string): string {
  return `CASE WHEN ${patch} IS NULL THEN stored.relations ELSE jsonb_strip_nulls(
      CASE WHEN jsonb_typeof(stored.relations) = 'object' THEN stored.relations ELSE '{}' END || ${patch}) END`;
}

/**
 * One statement decides and writes, so that of two writers the second waits on the row lock and then sees the first one's
 * position.
 */
function upsert(
  table: string,
  { columns, values, assignments, isNew }: Upsert,
): string {
  return returning(`INSERT INTO ${table} AS stored (slot_name, system_identifier, timeline, relations, ${columns})
  VALUES ($1::text, $2::text, $3::text::integer, $4::text::jsonb, ${values})
  ON CONFLICT (slot_name) DO UPDATE SET ${assignments},
    timeline = excluded.timeline, relations = ${merged('excluded.relations')}, updated_at = now()
  WHERE stored.system_identifier = excluded.system_identifier
    AND (stored.timeline <= excluded.timeline OR excluded.timeline = ${UNKNOWN_TIMELINE})
    AND ${isNew}`);
}

/**
 * A position that a crash of the server takes back must not have been confirmed to the source. The statement sees to that itself:
 * behind a pooler, each may run on another session.
 */
export function durably(statement: string): string {
  return `${returning(statement)},
  CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END AS commits`;
}

/**
 * A statement that returns one row in any case, with the system identifier when it has written. It is a SELECT, because
 * libraries that go by the kind of a statement return rows of nothing else.
 */
export function returning(statement: string): string {
  return `WITH written AS (
  ${statement}
  RETURNING stored.system_identifier
)
SELECT (SELECT written.system_identifier FROM written) AS server`;
}
