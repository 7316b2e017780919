import type { TypesOption } from '../../options/pipeline-options.js';
import type { CaptureSet } from '../../server/capture/capture-set.js';
import { readPublishedTables } from '../../server/published-tables.js';
import { requireReadable } from '../../server/readable-tables.js';
import type { CommandSession } from '../../server/session.js';
import { readRowMakers } from '../row-makers.js';
import type { RowMaker } from './chunk.js';
import type { ReadableTable } from './chunk-reader.js';
import { readTableShapes } from './table-shape.js';

/** What copying a table takes. */
export interface CopyableTable extends ReadableTable {
  readonly maker: RowMaker;
}

/** Reads which tables are captured, each with the shape that it has at the same moment. */
export async function discover(
  session: CommandSession,
  capture: CaptureSet,
): Promise<readonly ReadableTable[]> {
  await session.query('begin isolation level repeatable read read only');
  const tables = await readPublishedTables(session, capture);
  const shapes = await readTableShapes(
    session,
    tables.map(({ oid }) => oid),
  );
  await session.query('commit');
  return tables.map((table) => ({
    table,
    shape: shapes.get(table.oid) ?? '',
  }));
}

/**
 * Makes sure that tables can be copied, and learns how.
 *
 * @throws {HaltError} `preflight/select_privilege`, `preflight/row_security`
 */
export async function makeCopyable(
  session: CommandSession,
  types: TypesOption,
  readable: readonly ReadableTable[],
): Promise<readonly CopyableTable[]> {
  const tables = readable.map(({ table }) => table);
  await requireReadable(session, tables);
  const makerOf = await readRowMakers(session, types, tables);
  return readable.map((one) => ({ ...one, maker: makerOf(one.table) }));
}
