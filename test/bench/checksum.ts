import type { Row } from '../../lib/index.js';

const SEED = 0x811c9dc5;
const PRIME = 0x01000193;
/**
 * Of a text longer than this, as many characters are read as this, evenly spread from the first to the last: what the sink
 * does is part of what is measured.
 */
const CHARACTERS = 8;
/** Mixed in after a value, beyond every character, so that `1`, `'1'` and `true` differ. */
const END = { text: 0x10000, number: 0x10001, null: 0x10002, boolean: 0x10003 };

/**
 * Counts rows and adds up a hash of each, which depends on the type, the place and the content of every value. The sum does not
 * depend on the order of the rows.
 */
export class RowChecksum {
  #rows = 0;
  #sum = 0;

  /** Rows added. */
  get rows(): number {
    return this.#rows;
  }

  /** 32 bits, unsigned. */
  get sum(): number {
    return this.#sum >>> 0;
  }

  add(row: Row): void {
    let hash = SEED;
    for (const name in row) hash = mixValue(hash, row[name]);
    this.#rows++;
    this.#sum = (this.#sum + hash) | 0;
  }
}

function mixValue(hash: number, value: unknown): number {
  if (typeof value === 'string') return mixText(hash, value);
  if (typeof value === 'number') return mix(mix(hash, value | 0), END.number);
  if (typeof value === 'boolean')
    return mix(mix(hash, value ? 1 : 0), END.boolean);
  if (value === null) return mix(hash, END.null);
  throw new TypeError('The loads have no values of this kind.');
}

function mixText(hash: number, text: string): number {
  const { length } = text;
  const last = Math.min(length, CHARACTERS) - 1;
  const step = length > CHARACTERS ? (length - 1) / last : 1;
  let mixed = mix(hash, length);
  for (let index = 0; index <= last; index++)
    mixed = mix(mixed, text.charCodeAt(Math.round(index * step)));
  return mix(mixed, END.text);
}

function mix(hash: number, code: number): number {
  return Math.imul(hash ^ code, PRIME);
}
