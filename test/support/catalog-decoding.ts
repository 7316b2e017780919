import type { Decoded, Decoder } from '../../lib/engine/decode/decoder.js';
import type { CatalogTable } from '../../lib/engine/model/relation.js';
import type { CatalogType } from '../../lib/engine/values/catalog-types.js';
import { TypeTable } from '../../lib/engine/values/type-table.js';

/** A table that the catalog knows: key columns begin with `*`, and a type stands behind a colon, `text` when there is none. */
export function catalogTable(
  oid: number,
  columns: readonly string[],
  more: Partial<CatalogTable> = {},
): CatalogTable {
  const replicaIdentity = more.replicaIdentity ?? 'default';
  return {
    oid,
    schema: 'public',
    table: 't',
    replicaIdentity,
    columns: columns.map((column) => {
      const [, star, name = '', typeOid = '25'] =
        /^(\*?)([^:]*):?(\d+)?$/.exec(column) ?? [];
      return {
        name,
        typeOid: Number(typeOid),
        typeModifier: -1,
        key: star === '*' || replicaIdentity === 'full',
      };
    }),
    generated: [],
    ...more,
  };
}

/** Decodes as a connection does: asks a catalog what the decoder asks for. */
export class CatalogDecoding {
  /** What the decoder asked for, in order. */
  readonly asked: string[] = [];

  constructor(
    readonly decoder: Decoder,
    readonly types: TypeTable,
    /** As it is now. */
    public catalog: readonly CatalogTable[],
    private readonly catalogTypes: readonly CatalogType[] = [],
  ) {}

  decode(frame: Buffer): Decoded {
    for (let round = 0; round < 5; round++) {
      const decoded = this.decoder.decode(frame);
      if (decoded.kind === 'table-needed') {
        const { schema, table } = decoded.name;
        this.asked.push(`${schema}.${table}`);
        const found = this.catalog.find(
          (known) => known.schema === schema && known.table === table,
        );
        decoded.learn(found ?? null);
      } else if (decoded.kind === 'types-needed') {
        this.asked.push(...decoded.oids.map(String));
        this.types.learn(decoded.oids, this.catalogTypes);
      } else {
        return decoded;
      }
    }
    throw new Error('the decoder asks for ever');
  }
}
