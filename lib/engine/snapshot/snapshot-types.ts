import type { TypesOption } from '../options/pipeline-options.js';
import type { PublishedTable } from '../server/published-table.js';
import type { CommandSession } from '../server/session.js';
import { readAnnouncedTypes, readTypes } from '../server/type-catalog.js';
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
  const oids = new Set<number>();
  for (const { columns } of tables)
    for (const { typeOid } of columns)
      if (typeOid >= FIRST_ANNOUNCED_OID) oids.add(typeOid);
  if (oids.size === 0) return types;
  for (const { oid, schema, name } of await readAnnouncedTypes(session, [
    ...oids,
  ]))
    types.announce(oid, schema, name);
  const unresolved = types.unresolved([...oids]);
  if (unresolved.length > 0)
    types.learn(unresolved, await readTypes(session, unresolved));
  return types;
}

/** The server sends Type messages from here on (`FirstGenbkiObjectId`). */
const FIRST_ANNOUNCED_OID = 10_000;
