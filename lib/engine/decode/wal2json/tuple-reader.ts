import { MalformedMessage } from '../malformed-message.js';
import type { DocumentReader } from './document-reader.js';
import { literal, Literal } from './literal.js';

/** What the plugin says of a column beside its value. Of one text there is one object for a table. */
export interface ColumnHeader {
  readonly name: string;
  /** As `format_type` prints it, with its modifier. */
  readonly type: string;
  readonly typeOid: number;
  /** The column as fault texts name it. */
  readonly label: string;
}

/** A row, or the part of it that was sent. */
export interface Tuple {
  readonly headers: readonly ColumnHeader[];
  /** The server's text of each value. */
  readonly values: readonly (string | null)[];
}

const BOOL_OID = 16;
const BYTEA_OID = 17;
const NOT_HEX = /[^0-9a-f]/;

const BEFORE_NAME = literal('{"name":');
const BEFORE_TYPE = literal(',"type":');
const TYPE_OID = ',"typeoid":';
const BEFORE_OID = literal(TYPE_OID);
const BEFORE_VALUE = literal(',"value":');
const AFTER_VALUE = literal('}');
const COMMA = literal(',');
const BRACKET = literal(']');
const NULL = literal('null');
const TRUE = literal('true');
const FALSE = literal('false');

/** A header as it was met. */
export interface MetHeader {
  readonly bytes: Literal;
  readonly header: ColumnHeader;
}

/**
 * Reads the tuples of one kind of one table. The headers of the columns are the same in most rows, so they are compared with those of rows
 * before, and not read.
 */
export class TupleReader {
  /** Those of a row that had all of them, in their order. */
  #expected: readonly MetHeader[] = [];
  #headers: readonly ColumnHeader[] = [];

  /** @param met - all headers of the table, by their text */
  constructor(
    private readonly relationName: string,
    private readonly met: Map<string, MetHeader>,
  ) {}

  /**
   * Reads what is between the brackets, and the one that closes.
   *
   * @returns the same list of headers for each row that has all of them
   */
  read(reader: DocumentReader): Tuple {
    const expected = this.#expected;
    const values: (string | null)[] = [];
    let next = 0;
    /** Once the row differs from what was expected. */
    let met: MetHeader[] | null = null;
    let isNew = false;
    let ended = reader.takes(BRACKET);
    while (!ended) {
      let found = expected[next];
      if (found !== undefined && reader.takes(found.bytes)) {
        next++;
      } else {
        met ??= expected.slice(0, next);
        const later = expected.findIndex(
          ({ bytes }, index) => index > next && reader.takes(bytes),
        );
        found = expected[later] ?? this.#readHeader(reader);
        if (later === -1) isNew = true;
        else next = later + 1;
      }
      met?.push(found);
      values.push(readValue(reader, found.header));
      reader.expect(AFTER_VALUE, 'the end of a column');
      if (!reader.takes(COMMA)) {
        reader.expect(BRACKET, 'the end of a row');
        ended = true;
      }
    }
    if (met === null && next === expected.length)
      return { headers: this.#headers, values };
    met ??= expected.slice(0, next);
    const headers = met.map(({ header }) => header);
    if (isNew) {
      this.#expected = met;
      this.#headers = headers;
    }
    return { headers, values };
  }

  #readHeader(reader: DocumentReader): MetHeader {
    const start = reader.at;
    reader.expect(BEFORE_NAME, 'the name of a column');
    const name = reader.name();
    reader.expect(BEFORE_TYPE, 'the type of a column');
    const type = reader.typeName(TYPE_OID);
    reader.expect(BEFORE_OID, 'the OID of a type');
    // The plugin prints it with a sign.
    const typeOid = reader.integer() >>> 0;
    reader.expect(BEFORE_VALUE, 'the value of a column');
    const bytes = reader.since(start);
    const text = bytes.toString('latin1');
    const known = this.met.get(text);
    if (known !== undefined) return known;
    const label = `column ${JSON.stringify(name)} of ${this.relationName}`;
    const header = { name, type, typeOid, label };
    const met = { bytes: new Literal(bytes), header };
    this.met.set(text, met);
    return met;
  }
}

/** Reads a value and gives the text that pgoutput would send. */
function readValue(
  reader: DocumentReader,
  { typeOid, label }: ColumnHeader,
): string | null {
  if (reader.takes(NULL)) return null;
  if (typeOid === BOOL_OID) {
    if (reader.takes(TRUE)) return 't';
    if (reader.takes(FALSE)) return 'f';
    throw new MalformedMessage(`${label} is no boolean`);
  }
  // A number has lost its trailing zeros and more: the plugin was not told to print them as strings.
  if (!reader.isAtString)
    throw new MalformedMessage(`${label} came as other JSON than a string`);
  const text = reader.string();
  if (typeOid !== BYTEA_OID) return text;
  if (text.length % 2 !== 0 || NOT_HEX.test(text))
    throw new MalformedMessage(`${label} is not hexadecimal`);
  return `\\x${text}`;
}
