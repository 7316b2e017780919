import type { CatalogTable, Relation } from '../model/relation.js';
import type { DecoderName } from '../options/decoder-options.js';
import type { Decoder } from './decoder.js';
import { seenLast } from './pglogical/seen-last.js';
import { PglogicalDecoder } from './pglogical/pglogical-decoder.js';
import { PgoutputDecoder } from './pgoutput/pgoutput-decoder.js';
import type { ColumnTypes } from './row-layout.js';
import { seenBefore } from './wal2json/seen-before.js';
import { Wal2jsonDecoder } from './wal2json/wal2json-decoder.js';

/** What is known of tables that the output plugin does not describe by itself. */
export interface KnownCatalog {
  /** As the catalog has them now. */
  readonly tables: readonly CatalogTable[];
  /** The shape of a table as of the last transaction that is durable, by its OID; `null` when none is known. */
  readonly shapeOf: (oid: number) => Relation | null;
}

/** What a connection reads. */
export interface DecodedStream {
  readonly name: DecoderName;
  /** Whether logical decoding messages are wanted. */
  readonly messages: boolean;
}

/** Makes the decoder of a connection. */
export function makeDecoder(
  { name, messages }: DecodedStream,
  types: ColumnTypes,
  { tables, shapeOf }: KnownCatalog,
): Decoder {
  switch (name) {
    case 'pgoutput':
      return new PgoutputDecoder(types);
    case 'wal2json':
      return new Wal2jsonDecoder(
        types,
        tables.map((table) => seenBefore(table, shapeOf(table.oid))),
        messages,
      );
    case 'pglogical':
      return new PglogicalDecoder(
        types,
        tables.map((table) => seenLast(table, shapeOf(table.oid))),
      );
  }
}
