/**
 * The condition names of the SQLSTATEs that a pipeline may meet. A reason gives the name from here and never the server's
 * text, which may quote a row.
 *
 * @see {@link https://www.postgresql.org/docs/current/errcodes-appendix.html | PostgreSQL error codes}
 */
const CONDITIONS: Readonly<Record<string, string>> = {
  '08000': 'connection_exception',
  '08003': 'connection_does_not_exist',
  '08006': 'connection_failure',
  '08P01': 'protocol_violation',
  '0A000': 'feature_not_supported',
  '22012': 'division_by_zero',
  '22021': 'character_not_in_repertoire',
  '22023': 'invalid_parameter_value',
  '25006': 'read_only_sql_transaction',
  '28000': 'invalid_authorization_specification',
  '28P01': 'invalid_password',
  '3D000': 'invalid_catalog_name',
  '40001': 'serialization_failure',
  '40P01': 'deadlock_detected',
  '42501': 'insufficient_privilege',
  '42601': 'syntax_error',
  '42602': 'invalid_name',
  '42704': 'undefined_object',
  '42710': 'duplicate_object',
  '42883': 'undefined_function',
  '42P01': 'undefined_table',
  '53000': 'insufficient_resources',
  '53100': 'disk_full',
  '53200': 'out_of_memory',
  '53300': 'too_many_connections',
  '53400': 'configuration_limit_exceeded',
  '54000': 'program_limit_exceeded',
  '55000': 'object_not_in_prerequisite_state',
  '55006': 'object_in_use',
  '55P03': 'lock_not_available',
  '57014': 'query_canceled',
  '57P01': 'admin_shutdown',
  '57P02': 'crash_shutdown',
  '57P03': 'cannot_connect_now',
  '57P04': 'database_dropped',
  '57P05': 'idle_session_timeout',
  '58000': 'system_error',
  '58030': 'io_error',
  '58P01': 'undefined_file',
  '58P02': 'duplicate_file',
  XX000: 'internal_error',
  XX001: 'data_corrupted',
  XX002: 'index_corrupted',
};

/** Says an error of the server by its code, and by its name where that is known: `server error 55006 (object_in_use)`. */
export function serverErrorPhrase(sqlstate: string): string {
  const name = CONDITIONS[sqlstate];
  return name === undefined
    ? `server error ${sqlstate}`
    : `server error ${sqlstate} (${name})`;
}
