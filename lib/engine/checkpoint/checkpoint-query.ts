/** What a query function resolves with: the rows, or an object that holds them (as `pg` and Kysely return it). */
export type CheckpointQueryResult =
  readonly unknown[] | { readonly rows: readonly unknown[] };

/**
 * Runs one statement with `$1`, `$2` … as placeholders. Every value is text or `null`, and so is every column that comes
 * back, so no type parser or serialiser of a library can change a position on the way.
 */
export type CheckpointQuery = (
  sql: string,
  values: unknown[],
) => Promise<CheckpointQueryResult>;

/** The columns of one row. */
export type CheckpointRow = Readonly<Record<string, unknown>>;

/**
 * Runs a statement that always returns exactly one row. That holds for every statement here, because no rows would read as
 * "nothing stored" or "applied before" when in truth the query function has lost them.
 */
export async function fetchRow(
  query: CheckpointQuery,
  sql: string,
  values: unknown[],
): Promise<CheckpointRow> {
  const result: unknown = await query(sql, values);
  const rows = isRecord(result) ? result['rows'] : result;
  const row: unknown =
    Array.isArray(rows) && rows.length === 1 ? rows[0] : null;
  if (!isRecord(row)) {
    throw new TypeError(
      'The query function of CheckpointTable did not return the one row that its statement yields. It must resolve with the array of rows, or with an object that holds them as rows.',
    );
  }
  return row;
}

/** The text in a column; `null` for SQL NULL. */
export function textIn(row: CheckpointRow, column: string): string | null {
  const value = row[column];
  if (value !== null && typeof value !== 'string') {
    throw new TypeError(
      `The query function of CheckpointTable returned a row whose column ${column} is not text. It must return columns under their own names and as they are.`,
    );
  }
  return value;
}

/** The text in a column that is never NULL. */
export function presentTextIn(row: CheckpointRow, column: string): string {
  const text = textIn(row, column);
  if (text === null) {
    throw new TypeError(
      `The query function of CheckpointTable returned NULL in column ${column}, which is never NULL.`,
    );
  }
  return text;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
