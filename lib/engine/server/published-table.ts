import type { ReplicaIdentity } from '../model/relation.js';

/** A column of a table as the publications carry it. */
export interface PublishedColumn {
  readonly name: string;
  /** Quoted by the server. */
  readonly quotedName: string;
  /** OID of the declared type; for a domain, the domain's own. */
  readonly typeOid: number;
  /** `atttypmod`; -1 when the type has none. */
  readonly typeModifier: number;
  /** Part of the replica identity, as a Relation message says it. */
  readonly key: boolean;
}

/** A table that the publications carry, under the name and with the rows and columns that the stream has. */
export interface PublishedTable {
  readonly oid: number;
  readonly schema: string;
  readonly table: string;
  /** `schema.table`, as changes have it. */
  readonly name: string;
  /** `schema.table`, quoted by the server. */
  readonly quotedName: string;
  /** The root of a partition tree, whose rows are in its partitions. */
  readonly partitioned: boolean;
  readonly replicaIdentity: ReplicaIdentity;
  /** In the order of the table. */
  readonly columns: readonly PublishedColumn[];
  /**
   * Columns by which its rows can be read in order, in the order of the index: of the primary key, or else of the index that is its replica
   * identity. `null` when there is neither, or when one of these columns is not published.
   */
  readonly orderKey: readonly KeyColumn[] | null;
  /** Columns by which a row is found by its replica identity, in the order of the table; `null` when it is no index. */
  readonly identityKey: readonly KeyColumn[] | null;
  /** A condition as SQL, to be read under an empty search_path; `null` when every row is published. */
  readonly rowFilter: string | null;
  /** Rows by the last statistics; `null` when there are none. */
  readonly estimatedRows: number | null;
  /** Bytes of a row by the same, with what is stored out of line; `null` when there are none. */
  readonly estimatedRowBytes: number | null;
}

/** A column by which rows are ordered or found. */
export interface KeyColumn {
  readonly name: string;
  readonly quotedName: string;
  /** The type, with its schema and without a modifier, quoted by the server: text can be cast to it. */
  readonly quotedType: string;
  /** The schema of the operators by which its type is ordered, quoted by the server; `pg_catalog` mostly. */
  readonly operatorSchema: string;
  /** By which its texts are ordered, quoted by the server; `null` for a type that has none. */
  readonly quotedCollation: string | null;
}
