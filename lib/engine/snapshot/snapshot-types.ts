import type { TypesOption } from '../options/pipeline-options.js';
import type { PublishedTable } from '../server/published-table.js';
import type { CommandSession } from '../server/session.js';
import {
  readAnnouncedTypes,
  readTypes,
  teachTypes,
} from '../server/type-catalog.js';
import { TypeTable } from '../values/type-table.js';

/**
 * The types of all columns, by which values come out as the stream brings them: what Type messages say of user types
 * there, the catalog says here.
 */
export async function readSnapshotTypes(
  session: CommandSession,
  tables: readonly PublishedTable[],
  option: TypesOption,
): Promise<TypeTable> {
  const types = new TypeTable(option);
  await teachTypes(
    types,
    tables.flatMap(({ columns }) => columns.map(({ typeOid }) => typeOid)),
    {
      nameTypes: (oids) => readAnnouncedTypes(session, oids),
      readTypes: (oids) => readTypes(session, oids),
    },
  );
  return types;
}
