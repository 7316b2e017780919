import type { PublishedTable } from '../server/published-table.js';

/** The pieces of a query for the rows of a table that the stream carries. */
export interface TableQuery {
  /** What stands between SELECT and FROM, in the order of {@link PublishedTable.columns}; empty for a table without columns. */
  readonly columns: string;
  /** What follows FROM. It has no alias, so that the filter means its columns. */
  readonly from: string;
  /** A condition in parentheses, to be run under an empty search_path; `null` when every row is published. */
  readonly filter: string | null;
}

/**
 * A plain table is read alone: rows of tables that inherit from it are streamed under their own names, if at all. The rows of a partitioned
 * one are in its partitions.
 */
export function selectFrom(table: PublishedTable): TableQuery {
  const { columns, partitioned, quotedName, rowFilter } = table;
  return {
    columns: columns.map((column) => column.quotedName).join(', '),
    from: partitioned ? quotedName : `ONLY ${quotedName}`,
    filter: rowFilter === null ? null : `(${rowFilter})`,
  };
}
