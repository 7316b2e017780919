import { HaltError } from '../model/halt.js';
import { quoteLiteral } from './identifiers.js';
import type { PublishedTable } from './published-table.js';
import type { CommandSession, TextRow } from './session.js';

const NAMED_TABLES = 10;

/**
 * Makes sure that the role of the session may read every published row and column of the tables, before the first is read. Of a
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
 * Tables that cannot be read whole, in the order of their names. A privilege on a table is one on all its columns. A row filter may read
 * columns that are not published; the server knows them as what the filter depends on.
 */
function obstacles(tables: readonly PublishedTable[]): string {
  const wanted = tables.map(({ oid, columns, rowFilter }) => ({
    oid,
    columns: columns.map(({ name }) => name),
    filter: rowFilter,
  }));
  return `with
    wanted as materialized (
      select * from pg_catalog.json_to_recordset(${quoteLiteral(JSON.stringify(wanted))})
        as w (oid pg_catalog.oid, columns pg_catalog.json, filter pg_catalog.text)),
    needed as (
      select w.oid, a.attnum from wanted w
        cross join lateral pg_catalog.json_array_elements_text(w.columns) n(name)
        join pg_catalog.pg_attribute a on a.attrelid = w.oid and a.attname = n.name
      union all
      select w.oid, d.refobjsubid from wanted w
        join pg_catalog.pg_publication_rel r on r.prrelid = w.oid
          and pg_catalog.strpos(w.filter, pg_catalog.pg_get_expr(r.prqual, r.prrelid)) > 0
        join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_publication_rel'::pg_catalog.regclass and d.objid = r.oid
          and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.refobjid = w.oid
          and d.refobjsubid > 0 and (r.prattrs is null or d.refobjsubid <> all (r.prattrs))),
    judged as (
      select n.nspname, c.relname,
        pg_catalog.has_schema_privilege(n.oid, 'USAGE') as reachable,
        pg_catalog.has_table_privilege(c.oid, 'SELECT')
          or pg_catalog.has_any_column_privilege(c.oid, 'SELECT') and c.oid not in (
            select r.oid from needed r
              where not pg_catalog.has_column_privilege(r.oid, r.attnum::pg_catalog.int2, 'SELECT')) as readable,
        pg_catalog.row_security_active(c.oid) as secured
      from wanted w
        join pg_catalog.pg_class c on c.oid = w.oid
        join pg_catalog.pg_namespace n on n.oid = c.relnamespace)
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
