import {
  CATALOG_TYPES_QUERY,
  type CatalogType,
} from '../values/catalog-types.js';
import type { TypeTable } from '../values/type-table.js';
import type { CommandSession, TextRow } from './session.js';

/** What a Type message says. */
export interface AnnouncedType {
  readonly oid: number;
  readonly schema: string;
  /** For a domain, of the type under it, as the schema is. */
  readonly name: string;
}

const ANNOUNCED_TYPES_QUERY = `
WITH RECURSIVE under (oid, base) AS (
  SELECT asked, asked
    FROM pg_catalog.unnest(CAST(CAST($1 AS pg_catalog.text) AS pg_catalog.oid[])) AS asked
  UNION ALL
  SELECT under.oid, type.typbasetype
    FROM under JOIN pg_catalog.pg_type AS type ON type.oid = under.base AND type.typtype = 'd'
)
SELECT under.oid, namespace.nspname AS schema, type.typname AS name
  FROM under
  JOIN pg_catalog.pg_type AS type ON type.oid = under.base AND type.typtype <> 'd'
  JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = type.typnamespace`;

/** Asks the catalog what user types are made of. Types that are gone are absent from the answer. */
export async function readTypes(
  session: CommandSession,
  oids: readonly number[],
): Promise<readonly CatalogType[]> {
  const rows = await session.query(CATALOG_TYPES_QUERY, [arrayOf(oids)]);
  return rows.map(catalogType);
}

/** Asks the catalog for what a Type message would say of these types. Types that are gone are absent from the answer. */
export async function readAnnouncedTypes(
  session: CommandSession,
  oids: readonly number[],
): Promise<readonly AnnouncedType[]> {
  const rows = await session.query(ANNOUNCED_TYPES_QUERY, [arrayOf(oids)]);
  return rows.map(({ oid, schema, name }) => ({
    oid: Number(oid),
    schema: schema ?? '',
    name: name ?? '',
  }));
}

/** Whom to ask about types. */
export interface TypeCatalog {
  /** See {@link readAnnouncedTypes}. */
  nameTypes(oids: readonly number[]): Promise<readonly AnnouncedType[]>;
  /** See {@link readTypes}. */
  readTypes(oids: readonly number[]): Promise<readonly CatalogType[]>;
}

/** Teaches a type table what it does not know of these types: their names, and what arrays and domains are made of. */
export async function teachTypes(
  types: TypeTable,
  oids: readonly number[],
  catalog: TypeCatalog,
): Promise<void> {
  const unnamed = types.unnamed(oids);
  if (unnamed.length > 0) {
    const gone = new Set(unnamed);
    for (const { oid, schema, name } of await catalog.nameTypes(unnamed)) {
      types.announce(oid, schema, name);
      gone.delete(oid);
    }
    types.learn([...gone], []);
  }
  const unresolved = types.unresolved(oids);
  if (unresolved.length > 0)
    types.learn(unresolved, await catalog.readTypes(unresolved));
}

function arrayOf(oids: readonly number[]): string {
  return `{${oids.join(',')}}`;
}

function catalogType(row: TextRow): CatalogType {
  const kind = row['kind'];
  return {
    oid: row['oid'] ?? '',
    kind: kind === 'array' || kind === 'domain' ? kind : 'other',
    inner: row['inner'] ?? '',
    delimiter: row['delimiter'] ?? ',',
  };
}
