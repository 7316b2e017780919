import type { CatalogTable } from '../../model/relation.js';
import { asText } from '../../values/value-parser.js';
import {
  type ColumnLayout,
  type ColumnTypes,
  rowLayout,
  type RowLayout,
} from '../row-layout.js';
import { KEY_TUPLE, OLD_TUPLE } from '../tuple.js';
import type { WireTable } from './relation-message.js';

/** How the rows of a table are read until it is announced again. */
export interface WireLayout extends RowLayout {
  /** What an old row is, whatever the message calls it. */
  readonly oldTuple: typeof KEY_TUPLE | typeof OLD_TUPLE;
}

/**
 * Binds the types to the columns of a message.
 *
 * @param table - has each of these columns, or omits it
 */
export function wireLayout(
  wire: WireTable,
  table: CatalogTable,
  types: ColumnTypes,
): WireLayout {
  const layout = rowLayout(table, types);
  const delivered = new Map(
    layout.columns.map((column) => [column.name, column]),
  );
  return {
    ...layout,
    columns: wire.columns.map(
      ({ name }) => delivered.get(name) ?? omittedColumn(name),
    ),
    // The server knows an old row by the columns of an index, or logs all of it. The plugin marks both as a key.
    oldTuple: wire.columns.some(({ key }) => key) ? KEY_TUPLE : OLD_TUPLE,
  };
}

function omittedColumn(name: string): ColumnLayout {
  return { name, label: name, key: false, omitted: true, parse: asText };
}
