import type { CatalogTable } from '../model/relation.js';
import type { DecoderName } from '../options/decoder-options.js';
import type { Decoder } from './decoder.js';
import { PglogicalDecoder } from './pglogical/pglogical-decoder.js';
import { PgoutputDecoder } from './pgoutput/pgoutput-decoder.js';
import type { ColumnTypes } from './row-layout.js';
import { Wal2jsonDecoder } from './wal2json/wal2json-decoder.js';

/**
 * Makes the decoder of a connection.
 *
 * @param catalog - the tables that the plugin does not describe by itself
 */
export function makeDecoder(
  name: DecoderName,
  types: ColumnTypes,
  catalog: readonly CatalogTable[],
): Decoder {
  switch (name) {
    case 'pgoutput':
      return new PgoutputDecoder(types);
    case 'wal2json':
      return new Wal2jsonDecoder(types, catalog);
    case 'pglogical':
      return new PglogicalDecoder(types, catalog);
  }
}
