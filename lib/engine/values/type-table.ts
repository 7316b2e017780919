import pg from 'pg';
import type { TypesOption } from '../options/pipeline-options.js';
import { parseArrayLiteral } from './array-literal.js';
import { builtinType, builtinTypeNamed } from './builtin-types.js';
import type { BuiltinType } from './builtin-types.js';
import type { CatalogType } from './catalog-types.js';
import { exactParser } from './exact-parsers.js';
import { asText } from './value-parser.js';
import type { ValueParser } from './value-parser.js';

/** What a Type message said. For a domain the server names the type under it. */
interface AnnouncedType {
  readonly schema: string;
  readonly name: string;
  readonly builtin: BuiltinType | undefined;
}

/** The part of a `pg` types configuration that is used here, with the types that its own declaration leaves open. */
interface TextParsers {
  getTypeParser(oid: number, format: 'text'): ValueParser;
}

/** The server names types from here on (`FirstGenbkiObjectId`). */
const FIRST_NAMED_OID = 10_000;

/** How the server writes the schema of its own types in a Type message: as nothing. */
const PG_CATALOG = '';

/**
 * The types of one connection: built-in ones by their OID, others as Type messages and the catalog describe them.
 * OIDs of user types mean something in their own database only, so a table never outlives its connection.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html | Type message}
 */
export class TypeTable {
  readonly #types: 'exact' | 'text' | TextParsers;
  readonly #announced: Map<number, AnnouncedType>;
  /** Parsers of types that the catalog was asked about. */
  readonly #learned: Map<number, ValueParser>;

  /** @param known - what is announced to the one, and learned by it, is so to the other too */
  constructor(types: TypesOption, known?: TypeTable) {
    this.#types = types === 'pg' ? pg.types : types;
    this.#announced =
      known === undefined ? new Map<number, AnnouncedType>() : known.#announced;
    this.#learned =
      known === undefined ? new Map<number, ValueParser>() : known.#learned;
  }

  /**
   * Takes in a Type message. Another name under a known OID replaces what was known: the type was dropped and its OID
   * used again. The server repeats messages; the same name again changes nothing, so the catalog is not asked again.
   *
   * @param schema - empty or `pg_catalog` for the server's own types
   * @param name - of the type; for a domain, of the type under it
   */
  announce(oid: number, schema: string, name: string): void {
    const namespace = schema === 'pg_catalog' ? PG_CATALOG : schema;
    const known = this.#announced.get(oid);
    if (known?.schema === namespace && known.name === name) return;
    this.#learned.delete(oid);
    this.#announced.set(oid, {
      schema: namespace,
      name,
      builtin: namespace === PG_CATALOG ? builtinTypeNamed(name) : undefined,
    });
  }

  /** Those of these OIDs of which no Type message and no answer of the catalog has said a name. */
  unnamed(oids: readonly number[]): number[] {
    return [...new Set(oids)].filter(
      (oid) =>
        oid >= FIRST_NAMED_OID &&
        !this.#announced.has(oid) &&
        !this.#learned.has(oid),
    );
  }

  /**
   * Those of these OIDs whose values cannot be read before {@link TypeTable.learn} was told about them: arrays of user
   * types and domains over such arrays. The server names every array type with a `_` in front, and a message does not
   * say more. Only `exact` makes a difference between arrays and other user types.
   */
  unresolved(oids: readonly number[]): number[] {
    if (this.#types !== 'exact') return [];
    const open = new Set<number>();
    for (const oid of oids) {
      const type = this.#announced.get(oid);
      if (type === undefined || type.builtin !== undefined) continue;
      if (type.name.startsWith('_') && !this.#learned.has(oid)) open.add(oid);
    }
    return [...open];
  }

  /**
   * Takes in what the catalog answered.
   *
   * @param asked - the OIDs that the query was given; one without a row is gone, and its values are text
   * @param rows - all rows of the answer
   */
  learn(asked: readonly number[], rows: readonly CatalogType[]): void {
    const catalog = new Map(rows.map((row) => [Number(row.oid), row]));
    for (const oid of asked) this.#learned.set(oid, parserFrom(catalog, oid));
  }

  /** How the text of a column of this type is read. Text, when nothing is known about the type. */
  parser(oid: number): ValueParser {
    const builtin = this.#builtin(oid);
    switch (this.#types) {
      case 'text':
        return asText;
      case 'exact':
        return builtin === undefined
          ? (this.#learned.get(oid) ?? asText)
          : builtinParser(builtin);
      default:
        return this.#types.getTypeParser(builtin?.oid ?? oid, 'text');
    }
  }

  /** The name of a type without its schema, or the OID as text when nobody named it. A domain has the name of its base type. */
  name(oid: number): string {
    return (
      builtinType(oid)?.name ?? this.#announced.get(oid)?.name ?? String(oid)
    );
  }

  #builtin(oid: number): BuiltinType | undefined {
    return builtinType(oid) ?? this.#announced.get(oid)?.builtin;
  }
}

function builtinParser(type: BuiltinType): ValueParser {
  if (type.element === null) return exactParser(type.oid);
  return arrayParser(exactParser(type.element), type.delimiter);
}

/** How `exact` reads a type that the catalog describes: through domains and arrays down to a type that is neither. */
function parserFrom(
  catalog: ReadonlyMap<number, CatalogType>,
  oid: number,
): ValueParser {
  const builtin = builtinType(oid);
  if (builtin !== undefined) return builtinParser(builtin);
  const type = catalog.get(oid);
  if (type === undefined || type.kind === 'other') return asText;
  const inner = parserFrom(catalog, Number(type.inner));
  return type.kind === 'array' ? arrayParser(inner, type.delimiter) : inner;
}

/** A literal that is none stays text. */
function arrayParser(element: ValueParser, delimiter: string): ValueParser {
  return (text) => parseArrayLiteral(text, element, delimiter) ?? text;
}
