import { PublicationSet } from '../../lib/engine/server/capture/publication-set.js';
import type { AnySnapshotRow } from '../../lib/engine/model/snapshot.js';
import type {
  ConnectionOption,
  TypesOption,
} from '../../lib/engine/options/pipeline-options.js';
import type { PublishedTable } from '../../lib/engine/server/published-table.js';
import { readPublishedTables } from '../../lib/engine/server/published-tables.js';
import { CopySession } from '../../lib/engine/snapshot/copy-session.js';
import { readRowMakers } from '../../lib/engine/snapshot/row-makers.js';
import { selectFrom } from '../../lib/engine/snapshot/table-query.js';

const LIMITS = { rows: 1_000, bytes: 4 * 1024 * 1024 };

/** Runs work on a session that reads rows. */
export async function reading<T>(
  connection: ConnectionOption,
  work: (session: CopySession) => Promise<T>,
): Promise<T> {
  const session = await CopySession.open({
    connection,
    applicationName: 'reader',
    signal: new AbortController().signal,
  });
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

/** The tables that the publications carry. */
export function publishedTables(
  connection: ConnectionOption,
  publications: readonly string[] = ['p'],
): Promise<readonly PublishedTable[]> {
  return reading(connection, ({ commands }) =>
    readPublishedTables(commands, new PublicationSet(publications)),
  );
}

/** All rows of the tables that the publications carry, as a snapshot gives them. */
export function snapshotRows(
  connection: ConnectionOption,
  publications: readonly string[] = ['p'],
  types: TypesOption = 'exact',
): Promise<AnySnapshotRow[]> {
  return reading(connection, async (session) => {
    const tables = await readPublishedTables(session.commands, new PublicationSet(publications));
    const makers = await readRowMakers(session.commands, types, tables);
    const rows: AnySnapshotRow[] = [];
    for (const table of tables) {
      const maker = makers(table);
      for await (const page of session.copy(copySql(table), LIMITS))
        rows.push(...Array.from(page.rows, (row) => maker.whole(row)));
    }
    return rows;
  });
}

function copySql(table: PublishedTable): string {
  const { columns, from, filter } = selectFrom(table);
  const where = filter === null ? '' : ` WHERE ${filter}`;
  return `COPY (SELECT ${columns} FROM ${from}${where}) TO STDOUT`;
}
