import { fetchRow, textIn } from './checkpoint-query.js';
import type { CheckpointQuery } from './checkpoint-query.js';
import { createCheckpointTable } from './checkpoint-statements.js';

/** Which table an unqualified name means on the connection of a query function. */
export interface CheckpointLocation {
  /** OID of the table. */
  readonly oid: number;
  /** `schema.table`, quoted by the server. */
  readonly quotedName: string;
}

// When there is no such table, name is where the search path lets it be created: NULL when it names no schema.
const LOOK_UP = `SELECT found.oid::text AS oid,
  CASE WHEN found.oid IS NULL THEN quote_ident(current_schema()) || '.' || asked.name
    ELSE format('%I.%I', home.nspname, found.relname) END AS name
FROM (VALUES ($1::text)) AS asked (name)
LEFT JOIN pg_catalog.pg_class AS found ON found.oid = to_regclass(asked.name)
LEFT JOIN pg_catalog.pg_namespace AS home ON home.oid = found.relnamespace`;

/** There is no schema in which the table could be created. */
export class NoSchemaError extends Error {
  override readonly name = 'NoSchemaError';

  constructor() {
    super(
      'The checkpoint table cannot be created: the search_path of the connection names no schema that exists.',
    );
  }
}

/**
 * Finds the table by the search path and creates it when it is missing. It looks first, so a role that may not create
 * tables can use one that exists.
 *
 * @param name the table's name, quoted
 */
export async function locateCheckpointTable(
  query: CheckpointQuery,
  name: string,
): Promise<CheckpointLocation> {
  const found = await lookUp(query, name);
  if (found.location !== null) return found.location;
  try {
    await query(createCheckpointTable(found.quotedName), []);
  } catch (error) {
    // IF NOT EXISTS does not cover a second creator at the same moment: one of them fails with 23505, 42P07 or 42710.
    // Libraries wrap that code in ways of their own, so what counts is whether the table is there now.
    const { location } = await lookUp(query, name);
    if (location === null) throw error;
    return location;
  }
  const { location } = await lookUp(query, name);
  if (location === null) {
    throw new Error(
      'The checkpoint table was created and is not there: the query function of CheckpointTable must run each statement on the same database and commit it.',
    );
  }
  return location;
}

/** Where the table is, or `null` and the name under which it can be created. */
async function lookUp(
  query: CheckpointQuery,
  name: string,
): Promise<{ location: CheckpointLocation | null; quotedName: string }> {
  const row = await fetchRow(query, LOOK_UP, [name]);
  const oid = textIn(row, 'oid');
  const quotedName = textIn(row, 'name');
  if (quotedName === null) throw new NoSchemaError();
  const location = oid === null ? null : { oid: Number(oid), quotedName };
  return { location, quotedName };
}
