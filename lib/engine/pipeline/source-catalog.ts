import { readCatalogTables } from '../server/catalog-tables.js';
import type { CommandSession } from '../server/session.js';
import { readAnnouncedTypes, readTypes } from '../server/type-catalog.js';
import type { Catalog } from './decoding.js';

/**
 * The catalog of the source.
 *
 * @param ask - opens a session for a question
 */
export function sourceCatalog(
  ask: <T>(work: (session: CommandSession) => Promise<T>) => Promise<T>,
): Catalog {
  return {
    nameTypes: (oids) => ask((session) => readAnnouncedTypes(session, oids)),
    readTypes: (oids) => ask((session) => readTypes(session, oids)),
    readTable: async (name) => {
      const [table] = await ask((session) =>
        readCatalogTables(session, [name]),
      );
      return table ?? null;
    },
  };
}
