import { judgeError, sqlstateOf } from '../server/error-classes.js';
import { NoSchemaError } from './checkpoint-location.js';

/** Why a call to the database of the checkpoint failed. */
export interface StoreFault {
  /** Class name or SQLSTATE, never the text of the server. */
  readonly reason: string;
  /** Nothing but a person mends it. */
  readonly permanent: boolean;
}

/** By SQLSTATE: a whole code, or its class (two characters). Whatever is not here may pass by itself. */
const PERMANENT: ReadonlySet<string> = new Set([
  '3D000', // invalid_catalog_name: no such database
  '3F', // invalid_schema_name
  '42', // insufficient_privilege, undefined_table, syntax
]);

/** Judges whatever a call threw. Pure. */
export function judgeStoreError(error: unknown): StoreFault {
  if (error instanceof NoSchemaError) {
    const reason = 'its search_path names no schema that exists';
    return { reason, permanent: true };
  }
  const sqlstate = sqlstateOf(error);
  return {
    reason: judgeError(error, 'login').reason,
    permanent:
      sqlstate !== null &&
      (PERMANENT.has(sqlstate) || PERMANENT.has(sqlstate.slice(0, 2))),
  };
}
