import type { TypesOption } from '../options/pipeline-options.js';
import type { PublishedTable } from '../server/published-table.js';
import type { CommandSession } from '../server/session.js';
import type { RowMaker } from './incremental/chunk.js';
import { rowMaker } from './row-maker.js';
import { readSnapshotTypes } from './snapshot-types.js';

/** Of each of the tables whose types were asked for. */
export type RowMakers = (table: PublishedTable) => RowMaker;

/** Asks the catalog for the types of all columns, so that their values come out as the stream brings them. */
export async function readRowMakers(
  session: CommandSession,
  option: TypesOption,
  tables: readonly PublishedTable[],
): Promise<RowMakers> {
  const types = await readSnapshotTypes(session, tables, option);
  return (table) => rowMaker(table, types);
}
