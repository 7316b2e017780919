import { type Table, TABLES } from './schema.js';

/** Runs SQL and gives rows. */
export interface Database {
  query<R extends Record<string, unknown>>(
    sql: string,
    values?: readonly unknown[],
  ): Promise<R[]>;
}

/** How far a copy is from its source, in rows. */
export interface Difference {
  /** Rows of both sides that have the same key. */
  compared: number;
  missing: number;
  extra: number;
  different: number;
}

/** Compares all tables row by row, in PostgreSQL's own text of the whole row. */
export async function compare(
  source: Database,
  target: Database,
): Promise<Difference> {
  const total = { compared: 0, missing: 0, extra: 0, different: 0 };
  for (const table of Object.values(TABLES)) {
    const [wanted, found] = await Promise.all([
      rowsByKey(source, table),
      rowsByKey(target, table),
    ]);
    for (const [key, row] of wanted) {
      const copy = found.get(key);
      if (copy === undefined) total.missing += 1;
      else total.compared += 1;
      if (copy !== undefined && copy !== row) total.different += 1;
      found.delete(key);
    }
    total.extra += found.size;
  }
  return total;
}

/** What the ledger of the target says. */
export interface AppliedCounts {
  /** Transactions, each counted once. */
  applied: number;
  /** Transactions that the ledger has more than once. */
  appliedTwice: number;
}

export async function countApplied(target: Database): Promise<AppliedCounts> {
  const [counts] = await target.query<{ applied: number; twice: number }>(
    `SELECT count(*)::int AS applied, (count(*) FILTER (WHERE times > 1))::int AS twice
       FROM (SELECT count(*) AS times FROM ledger GROUP BY commit_lsn) AS transactions`,
  );
  return { applied: counts?.applied ?? 0, appliedTwice: counts?.twice ?? 0 };
}

/** Rows that snapshots have brought. */
export interface CopiedCounts {
  /** Each counted once. */
  readonly copied: number;
  /** How often one came again. */
  readonly repeated: number;
}

export async function countCopied(target: Database): Promise<CopiedCounts> {
  const [counts] = await target.query<{ copied: number; all: number }>(
    `SELECT count(DISTINCT (table_name, key))::int AS copied, count(*)::int AS all
       FROM copied, unnest(keys) AS key`,
  );
  const { copied, all } = counts ?? { copied: 0, all: 0 };
  return { copied, repeated: all - copied };
}

async function rowsByKey(
  database: Database,
  { name, key, columns }: Table,
): Promise<Map<string, string>> {
  const rows = await database.query<{ key: string; row: string }>(
    `SELECT ROW(${key.join(', ')})::text AS key, ROW(${columns.join(', ')})::text AS row FROM ${name}`,
  );
  return new Map(rows.map((row) => [row.key, row.row]));
}
