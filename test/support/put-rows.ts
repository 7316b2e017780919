import { type ClientBase, escapeIdentifier } from 'pg';
import type { AnySnapshotRow } from '../../lib/engine/model/snapshot.js';

/** Of one statement. */
const MOST_PLACES = 60_000;

/** Writes rows of one table by its replica identity, and leaves alone what they do not have. */
export async function putRows(
  client: ClientBase,
  rows: readonly AnySnapshotRow[],
): Promise<void> {
  const whole = rows.filter(({ unchanged }) => unchanged.length === 0);
  await put(client, whole);
  for (const row of rows)
    if (row.unchanged.length > 0) await put(client, [row]);
}

/** Writes rows that have the same columns. */
async function put(
  client: ClientBase,
  rows: readonly AnySnapshotRow[],
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const { schema, table, columns } = first;
  const names = Object.keys(first.record);
  const key = columns.filter((column) => column.key).map(({ name }) => name);
  const updates = names
    .map(escapeIdentifier)
    .map((column) => `${column} = excluded.${column}`);
  const conflict =
    key.length === 0
      ? ''
      : ` on conflict (${key.map(escapeIdentifier).join(', ')}) do update set ${updates.join(', ')}`;
  const most = Math.floor(MOST_PLACES / names.length);
  for (let from = 0; from < rows.length; from += most) {
    const some = rows.slice(from, from + most);
    const places = some.map(
      (_, row) =>
        `(${names.map((_name, column) => `$${row * names.length + column + 1}`).join(', ')})`,
    );
    await client.query(
      `insert into ${escapeIdentifier(schema)}.${escapeIdentifier(table)} (${names.map(escapeIdentifier).join(', ')}) values ${places.join(', ')}${conflict}`,
      some.flatMap(({ record }) => names.map((name) => record[name])),
    );
  }
}
