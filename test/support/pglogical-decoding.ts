import { PglogicalDecoder } from '../../lib/engine/decode/pglogical/pglogical-decoder.js';
import type { CatalogTable } from '../../lib/engine/model/relation.js';
import type { CatalogType } from '../../lib/engine/values/catalog-types.js';
import { TypeTable } from '../../lib/engine/values/type-table.js';
import { CatalogDecoding } from './catalog-decoding.js';
import { startupFrame } from './pglogical-frames.js';

/**
 * A connection to a server with pglogical, after the startup message.
 *
 * @param catalog - what it answers
 * @param tables - what it said when the connection began
 */
export function pglogicalDecoding(
  catalog: readonly CatalogTable[],
  tables: readonly CatalogTable[] = [],
  catalogTypes: readonly CatalogType[] = [],
): CatalogDecoding {
  const types = new TypeTable('exact');
  const decoding = new CatalogDecoding(
    new PglogicalDecoder(types, tables),
    types,
    catalog,
    catalogTypes,
  );
  decoding.decode(startupFrame());
  return decoding;
}
