import { HaltError } from '../model/halt.js';
import type { PublishedTable } from './published-table.js';
import type { CommandSession, TextRow } from './session.js';

const NAMED_TABLES = 10;

/**
 * Makes sure that the role of the session may lock the tables and read every row of them, before the first is read. Of a
 * partitioned table it needs privileges on the table itself alone. Reads catalogs alone.
 *
 * @throws {HaltError} `preflight/select_privilege`, `preflight/row_security`, with the SQL that mends it
 * @see {@link https://www.postgresql.org/docs/current/ddl-priv.html | Privileges}
 * @see {@link https://www.postgresql.org/docs/current/ddl-rowsecurity.html | Row security policies}
 */
export async function requireReadable(
  session: CommandSession,
  tables: readonly PublishedTable[],
): Promise<void> {
  if (tables.length === 0) return;
  const rows = await session.query(obstacles(tables));
  const forbidden = rows.filter(
    (row) => row['readable'] === 'f' || row['reachable'] === 'f',
  );
  if (forbidden.length > 0) refuseForbidden(forbidden);
  if (rows.length > 0) refuseSecured(rows);
}

/**
 * Tables that cannot be read whole, in the order of their names. Privileges on columns are not enough: locking a table asks for one on the
 * table.
 */
function obstacles(tables: readonly PublishedTable[]): string {
  const oids = tables.map(({ oid }) => oid).join(',');
  return `with judged as (
      select n.nspname, c.relname,
        pg_catalog.has_schema_privilege(n.oid, 'USAGE') as reachable,
        pg_catalog.has_table_privilege(c.oid, 'SELECT') as readable,
        pg_catalog.row_security_active(c.oid) as secured
      from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.oid = any ('{${oids}}'::pg_catalog.oid[]))
    select pg_catalog.quote_ident(current_user) as role, pg_catalog.quote_ident(nspname) as schema,
      pg_catalog.format('%I.%I', nspname, relname) as name, reachable, readable
    from judged where not reachable or not readable or secured order by nspname, relname`;
}

function refuseForbidden(rows: readonly TextRow[]): never {
  const role = rows[0]?.['role'] ?? '';
  const named = rows.slice(0, NAMED_TABLES);
  const schemas = named.filter((row) => row['reachable'] === 'f');
  const tables = named.filter((row) => row['readable'] === 'f');
  const grants = [
    ...grant('USAGE ON SCHEMA', schemas, 'schema', role),
    ...grant('SELECT ON', tables, 'name', role),
  ];
  throw new HaltError('preflight/select_privilege', {
    detail: `the role ${role} may not read ${enumeration(rows)}; run: ${grants.join('; ')}`,
  });
}

function refuseSecured(rows: readonly TextRow[]): never {
  const role = rows[0]?.['role'] ?? '';
  throw new HaltError('preflight/row_security', {
    detail: `row security applies to the role ${role} on ${enumeration(rows)}; run: ALTER ROLE ${role} BYPASSRLS`,
  });
}

function grant(
  what: string,
  rows: readonly TextRow[],
  column: string,
  role: string,
): string[] {
  const names = [...new Set(rows.map((row) => row[column]))];
  return names.length === 0
    ? []
    : [`GRANT ${what} ${names.join(', ')} TO ${role}`];
}

function enumeration(rows: readonly TextRow[]): string {
  const named = rows
    .slice(0, NAMED_TABLES)
    .map(({ name }) => name)
    .join(', ');
  const more = rows.length - NAMED_TABLES;
  return more > 0 ? `${named} and ${more} more` : named;
}
