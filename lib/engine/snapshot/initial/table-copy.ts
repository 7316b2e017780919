import type { AnySnapshotRow } from '../../model/snapshot.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { SnapshotMeter } from '../../telemetry/snapshot-meter.js';
import type { CopySession } from '../copy-session.js';
import type { RowMaker } from '../incremental/chunk.js';
import { PAGE_BYTES, PAGE_ROWS } from '../raw-row.js';
import { selectFrom } from '../table-query.js';
import { refusingMissing } from './unaltered-tables.js';

/** Rows of one table, in the order in which they were read. */
export interface InitialPage {
  readonly rows: readonly AnySnapshotRow[];
  /** `schema.table`. */
  readonly relation: string;
  /** It comes once a table, also for an empty one. */
  readonly firstForTable: boolean;
}

/** Who gets the rows, and who is told. */
export interface TableCopyPorts {
  /** Resolves when the rows are durable. Called one at a time for each table. */
  deliver(page: InitialPage): Promise<void>;
  readonly meter: Pick<SnapshotMeter, 'rows' | 'tableDone'>;
}

/** Hands over all rows of one table, page by page. */
export async function copyTable(
  session: CopySession,
  table: PublishedTable,
  maker: Pick<RowMaker, 'whole'>,
  ports: TableCopyPorts,
): Promise<void> {
  const relation = table.name;
  let firstForTable = true;
  const hand = async (rows: readonly AnySnapshotRow[]): Promise<void> => {
    await ports.deliver({ rows, relation, firstForTable });
    firstForTable = false;
    ports.meter.rows(relation, rows.length);
  };
  const pages = session.copy(copySql(table), {
    rows: PAGE_ROWS,
    bytes: PAGE_BYTES,
  });
  // A function of its own forgets its page before the next one is read.
  const handNext = async (): Promise<boolean> => {
    const { value: page } = await refusingMissing(() => pages.next());
    if (page === undefined) return false;
    await hand(Array.from(page.rows, (row) => maker.whole(row)));
    return true;
  };
  try {
    for (let more = true; more;) more = await handNext();
  } finally {
    await pages.return();
  }
  if (firstForTable) await hand([]);
  ports.meter.tableDone(relation);
}

function copySql(table: PublishedTable): string {
  const { columns, from, filter } = selectFrom(table);
  const where = filter === null ? '' : ` WHERE ${filter}`;
  return `COPY (SELECT ${columns} FROM ${from}${where}) TO STDOUT`;
}
