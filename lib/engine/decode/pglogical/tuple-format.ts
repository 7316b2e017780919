import { MalformedMessage } from '../malformed-message.js';
import type { TupleFormat } from '../tuple.js';
import { readTerminated } from './fields.js';

const TUPLE = 0x54; // T

/** A tuple has a mark of its own; a text ends with a zero byte, which its length counts. */
export const PGLOGICAL_TUPLES: TupleFormat = {
  count: (reader) => {
    if (reader.uint8() !== TUPLE) {
      throw new MalformedMessage('unknown kind of tuple');
    }
    return reader.int16();
  },
  text: (reader) => readTerminated(reader, reader.length()),
  skipText: (reader) => {
    readTerminated(reader, reader.length());
  },
};
