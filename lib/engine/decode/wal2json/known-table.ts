import type {
  CatalogTable,
  Relation,
  TableShape,
} from '../../model/relation.js';
import { MalformedMessage } from '../malformed-message.js';
import { type ColumnTypes, type RowLayout, rowLayout } from '../row-layout.js';
import { isFixedWidth } from './fixed-width.js';
import type { RowDocument } from './row-reader.js';
import { shownShape } from './shown-shape.js';
import type { ColumnHeader, Tuple } from './tuple-reader.js';

/** The texts of a row in the order of the announced columns; `undefined` where there is none. */
export type PlacedRow = readonly (string | null | undefined)[];

/** A document about a row, as the announced table has it. */
export interface FittedRow {
  readonly layout: RowLayout;
  readonly columns: PlacedRow;
  readonly identity: PlacedRow;
}

/** A row that is not there. */
const NOTHING: PlacedRow = [];

/** The place of a generated column, of which nobody is told. */
const NOWHERE = -1;

/** A table as the catalog and the documents have shown it so far. */
export class KnownTable {
  #shape: TableShape;
  /** As the catalog had it last. */
  #catalog: CatalogTable | null;
  /** Names that the catalog did not know. */
  readonly #unheardOf = new Set<string>();
  /** What was announced, and from which shape. */
  #announced: {
    readonly shape: TableShape;
    readonly layout: RowLayout;
  } | null = null;
  /** The place of the column of each header that agrees with what was announced. */
  readonly #places = new Map<ColumnHeader, number>();
  /** Lists of headers that are the announced columns in their order. */
  #inOrder = new WeakSet<readonly ColumnHeader[]>();

  /** @param catalog - `null` when the catalog does not have the table */
  constructor(shape: TableShape, catalog: CatalogTable | null) {
    this.#shape = shape;
    this.#catalog = catalog;
  }

  get isAnnounced(): boolean {
    return this.#announced !== null;
  }

  /** Whether the document names a column of which the catalog has to be asked. */
  asksFor(row: RowDocument): boolean {
    return this.#unknownTo(row).length > 0;
  }

  /** Takes in what the catalog answered about the columns of the document. */
  learn(row: RowDocument, table: CatalogTable | null): void {
    if (table !== null) this.#renew(table);
    for (const name of this.#unknownTo(row)) this.#unheardOf.add(name);
  }

  /** Takes in how the catalog has the table now. What it has lost is announced with the next row. */
  review(table: CatalogTable): void {
    this.#renew(table);
    const names = new Set(table.columns.map(({ name }) => name));
    const left = this.#shape.columns.filter(({ name }) => names.has(name));
    if (left.length < this.#shape.columns.length)
      this.#shape = { ...this.#shape, columns: left };
  }

  /** The row in the order of the announced columns; `null` when the document shows another shape, or none was announced. */
  fit(row: RowDocument): FittedRow | null {
    if (this.#announced?.shape !== this.#shape) return null;
    const { layout } = this.#announced;
    const fitted = this.#place(row, layout);
    if (fitted !== null && isWhole(fitted, row.action)) return fitted;
    if (shownShape(this.#shape, row, this.#catalog) !== this.#shape)
      return null;
    this.#agree(row, layout);
    return this.#place(row, layout);
  }

  /** OIDs of the types of the shape that the document shows. */
  typesOf(row: RowDocument): number[] {
    return shownShape(this.#shape, row, this.#catalog).columns.map(
      ({ typeOid }) => typeOid,
    );
  }

  /** Takes over the shape that the document shows. */
  announce(row: RowDocument, types: ColumnTypes): Relation {
    const shape = shownShape(this.#shape, row, this.#catalog);
    const layout = rowLayout(shape, types);
    this.#shape = shape;
    this.#announced = { shape, layout };
    this.#forgetPlaces();
    return layout.relation;
  }

  #renew(table: CatalogTable): void {
    this.#catalog = table;
    this.#forgetPlaces();
    if (table.oid === this.#shape.oid) return;
    // Another table has the name.
    this.#shape = table;
    this.#unheardOf.clear();
  }

  #forgetPlaces(): void {
    this.#places.clear();
    this.#inOrder = new WeakSet();
  }

  /** Names of columns that neither the table nor the catalog has. */
  #unknownTo({ columns, identity }: RowDocument): string[] {
    const catalog = this.#catalog;
    if (catalog === null) return [];
    const names = [
      ...(columns?.headers ?? []),
      ...(identity?.headers ?? []),
    ].map(({ name }) => name);
    const known = new Set([
      ...this.#shape.columns.map(({ name }) => name),
      ...catalog.columns.map(({ name }) => name),
      ...catalog.generated,
    ]);
    return names.filter(
      (name) => !known.has(name) && !this.#unheardOf.has(name),
    );
  }

  /** The headers of the document agree with what was announced. */
  #agree({ columns, identity }: RowDocument, layout: RowLayout): void {
    const places = new Map(layout.columns.map(({ name }, at) => [name, at]));
    for (const header of [
      ...(columns?.headers ?? []),
      ...(identity?.headers ?? []),
    ])
      this.#places.set(header, places.get(header.name) ?? NOWHERE);
  }

  #place(row: RowDocument, layout: RowLayout): FittedRow | null {
    const columns = this.#placeTuple(row.columns, layout);
    const identity = this.#placeTuple(row.identity, layout);
    return columns === null || identity === null
      ? null
      : { layout, columns, identity };
  }

  #placeTuple(tuple: Tuple | null, { columns }: RowLayout): PlacedRow | null {
    if (tuple === null) return NOTHING;
    const { headers, values } = tuple;
    if (this.#inOrder.has(headers)) return values;
    const placed: (string | null | undefined)[] = columns.map(() => undefined);
    let isInOrder = headers.length === columns.length;
    for (const [index, header] of headers.entries()) {
      const place = this.#places.get(header);
      if (place === undefined) return null;
      if (place !== index) isInOrder = false;
      if (place === NOWHERE) continue;
      if (placed[place] !== undefined)
        throw new MalformedMessage(`${header.label} came twice`);
      placed[place] = values[index];
    }
    if (isInOrder) this.#inOrder.add(headers);
    return placed;
  }
}

/** Whether the row has all values that prove the shape to be the announced one. */
function isWhole(
  { layout, columns, identity }: FittedRow,
  action: RowDocument['action'],
): boolean {
  const { columns: announced, replicaIdentity } = layout.relation;
  const isFull = replicaIdentity === 'full';
  const hasNew = announced.every(
    ({ typeOid }, index) =>
      columns[index] !== undefined ||
      (action === 'update' && !isFixedWidth(typeOid)),
  );
  switch (action) {
    case 'truncate':
      return true;
    case 'insert':
      return hasNew;
    case 'update':
    case 'delete':
      return (
        (hasNew || action === 'delete') &&
        (isFull || layout.keyed) &&
        announced.every(
          ({ key }, index) => !key || identity[index] !== undefined,
        )
      );
  }
}
