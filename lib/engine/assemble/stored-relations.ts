import type { Column, Relation, ReplicaIdentity } from '../model/relation.js';

/** Shapes by OID that a checkpoint does not have yet; `null` for a table that is no longer kept. */
export type UnstoredRelations = ReadonlyMap<number, Relation | null>;

/** The shapes that were read with a checkpoint. */
export interface StoredRelations {
  /** In the order in which they were stored. */
  readonly relations: readonly Relation[];
  /** Of tables that lost their name to another. */
  readonly nameless: readonly Relation[];
  /** OIDs of tables whose shape cannot be read. */
  readonly broken: readonly number[];
  /** Whether all of it can be read. */
  readonly whole: boolean;
  /** Number of the shape that is stored next. */
  readonly nextNumber: number;
}

const IDENTITIES: readonly ReplicaIdentity[] = [
  'default',
  'nothing',
  'full',
  'index',
];

/** Number of the shapes of tables that lost their name to another. */
const NAMELESS = -1;

/** A shape with its number. */
interface Entry {
  readonly number: number;
  readonly relation: Relation;
}

/**
 * Writes shapes as a JSON merge patch: an object with the OID of each table, `null` for one to remove. A table is
 * `[number, schema, table, identity, columns]`, a column `[name, type OID, type, modifier, key]`, the last two left out where
 * they are -1 and false. Each table is text of its own, since `jsonb` takes a dozen bytes for a small number, and every
 * advance of the checkpoint copies what is stored.
 *
 * @param hasName - false for a table that lost its name to another
 */
export function writeRelations(
  relations: UnstoredRelations,
  firstNumber: number,
  hasName: (relation: Relation) => boolean = () => true,
): string {
  const entries = [...relations].map(([oid, relation], index) => [
    String(oid),
    relation === null
      ? null
      : JSON.stringify(
          entryOf(relation, hasName(relation) ? firstNumber + index : NAMELESS),
        ),
  ]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** Reads what was written. Never throws: what cannot be read is as if it had not been stored. */
export function readRelations(json: string | null): StoredRelations {
  const stored = json === null ? {} : parsed(json);
  if (!isObject(stored))
    return {
      relations: [],
      nameless: [],
      broken: [],
      whole: false,
      nextNumber: 0,
    };
  const entries: Entry[] = [];
  const broken: string[] = [];
  for (const [key, value] of Object.entries(stored)) {
    if (value === null) continue;
    const entry = readEntry(Number(key), value);
    if (entry === null) broken.push(key);
    else entries.push(entry);
  }
  entries.sort((one, other) => one.number - other.number);
  const of = (those: (entry: Entry) => boolean): Relation[] =>
    entries.filter(those).map(({ relation }) => relation);
  return {
    relations: of(({ number }) => number !== NAMELESS),
    nameless: of(({ number }) => number === NAMELESS),
    broken: broken.map(Number).filter(isOid),
    whole: broken.length === 0,
    nextNumber: (entries.at(-1)?.number ?? -1) + 1,
  };
}

function entryOf(relation: Relation, number: number): unknown[] {
  const { schema, table, replicaIdentity, columns } = relation;
  return [
    number,
    ascii(schema),
    ascii(table),
    IDENTITIES.indexOf(replicaIdentity),
    columns.map(({ name, typeOid, type, typeModifier, key }) => [
      ascii(name),
      typeOid,
      ascii(type),
      ...(key ? [typeModifier, 1] : typeModifier === -1 ? [] : [typeModifier]),
    ]),
  ];
}

function readEntry(oid: number, text: unknown): Entry | null {
  const value = typeof text === 'string' ? parsed(text) : null;
  if (!isOid(oid) || !isArray(value)) return null;
  const [number, schema, table, identity, columns] = value;
  const replicaIdentity =
    typeof identity === 'number' ? IDENTITIES[identity] : undefined;
  if (
    !isInteger(number) ||
    !isText(schema) ||
    !isText(table) ||
    replicaIdentity === undefined ||
    !isArray(columns)
  )
    return null;
  const read = columns.map(readColumn);
  const known = read.filter((column) => column !== null);
  if (known.length < read.length) return null;
  const name = `${plain(schema)}.${plain(table)}`;
  return {
    number,
    relation: {
      oid,
      schema: plain(schema),
      table: plain(table),
      name,
      replicaIdentity,
      columns: known,
    },
  };
}

function readColumn(value: unknown): Column | null {
  if (!isArray(value)) return null;
  const [name, typeOid, type, typeModifier = -1, key = 0] = value;
  return isText(name) &&
    isOid(typeOid) &&
    isText(type) &&
    isInteger(typeModifier)
    ? {
        name: plain(name),
        typeOid,
        type: plain(type),
        typeModifier,
        key: key === 1,
      }
    : null;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

/** The encoding of the sink's database may not know every character of the source's names. */
function ascii(name: string): string {
  return name.replace(/[^ -~]+|%/gu, encodeURIComponent);
}

function plain(text: string): string {
  return decodeURIComponent(text);
}

/** A name as it is written. */
function isText(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  try {
    plain(value);
    return true;
  } catch {
    return false;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isArray(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isOid(value: unknown): value is number {
  return isInteger(value) && value > 0 && value < 2 ** 32;
}
