import {
  CATALOG_TYPES_QUERY,
  type CatalogType,
} from '../values/catalog-types.js';
import type { CommandSession, TextRow } from './session.js';

/** Asks the catalog what user types are made of. Types that are gone are absent from the answer. */
export async function readTypes(
  session: CommandSession,
  oids: readonly number[],
): Promise<readonly CatalogType[]> {
  const rows = await session.query(CATALOG_TYPES_QUERY, [
    `{${oids.join(',')}}`,
  ]);
  return rows.map(catalogType);
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
