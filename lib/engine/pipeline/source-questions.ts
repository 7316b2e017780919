import { makeDecoder } from '../decode/make-decoder.js';
import type { CatalogTable } from '../model/relation.js';
import { readCatalogTables } from '../server/catalog-tables.js';
import type { CommandSession } from '../server/session.js';
import {
  mayBeRolledBack,
  mayBeRolledBackSince,
} from '../server/subtransactions.js';
import { readAnnouncedTypes, readTypes } from '../server/type-catalog.js';
import type { IntakePorts } from './intake.js';
import type { ConnectionSubject } from './subject.js';

/**
 * What the stream alone does not tell, and who knows it.
 *
 * @param tables - those that the output plugin does not describe by itself, as the catalog has them
 * @param ask - opens a session for a question
 */
export function sourceQuestions(
  { options, schema }: Pick<ConnectionSubject, 'options' | 'schema'>,
  tables: readonly CatalogTable[],
  ask: <T>(question: (session: CommandSession) => Promise<T>) => Promise<T>,
): Pick<
  IntakePorts,
  'makeDecoder' | 'catalog' | 'rolledBack' | 'rolledBackSince'
> {
  return {
    makeDecoder: (types) =>
      makeDecoder(
        { name: options.decoder.name, messages: options.messages },
        types,
        { tables, shapeOf: (oid) => schema.history.shapeOf(oid) },
      ),
    catalog: {
      nameTypes: (oids) => ask((session) => readAnnouncedTypes(session, oids)),
      readTypes: (oids) => ask((session) => readTypes(session, oids)),
      readTable: async (name) => {
        const [table] = await ask((session) =>
          readCatalogTables(session, [name]),
        );
        return table ?? null;
      },
    },
    rolledBack: (subxids) =>
      ask((session) => mayBeRolledBack(session, subxids)),
    rolledBackSince: (xid, known) =>
      ask((session) => mayBeRolledBackSince(session, xid, known)),
  };
}
