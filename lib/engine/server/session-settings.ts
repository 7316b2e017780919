import { quoteLiteral } from './identifiers.js';

/**
 * Settings on which the text of values, the reading of literals or the life of a session depend. A role, a database or a
 * connection string may have changed them; every session of the library pins them.
 *
 * @see {@link https://www.postgresql.org/docs/current/runtime-config-client.html | Client connection defaults}
 */
const PINNED: Readonly<Record<string, string>> = {
  DateStyle: 'ISO, YMD',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  extra_float_digits: '1',
  bytea_output: 'hex',
  client_encoding: 'UTF8',
  lc_monetary: 'C',
  quote_all_identifiers: 'off',
  standard_conforming_strings: 'on',
  // A lower level would hide the warning by which PostgreSQL 18 reports a missing publication.
  client_min_messages: 'warning',
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  transaction_timeout: '0',
  idle_session_timeout: '0',
};

/**
 * Decides whether names in values of `regclass` and the like come with their schema. Ordinary sessions keep theirs, by which a checkpoint
 * table is found.
 */
const PINNED_FOR_REPLICATION: Readonly<Record<string, string>> = {
  search_path: '',
};

/** One statement that pins the settings that this server knows and names the session. */
export function pinSettingsSql(
  applicationName: string,
  kind: 'sql' | 'replication',
): string {
  const values = Object.entries({
    ...PINNED,
    ...(kind === 'replication' && PINNED_FOR_REPLICATION),
    application_name: applicationName,
  }).map(([name, value]) => `(${quoteLiteral(name)}, ${quoteLiteral(value)})`);
  return (
    'select pg_catalog.set_config(s.name, v.value, false)' +
    ` from (values ${values.join(', ')}) v (name, value)` +
    ' join pg_catalog.pg_settings s on pg_catalog.lower(s.name) = pg_catalog.lower(v.name)'
  );
}
