import type { TupleFormat } from '../tuple.js';

/** A tuple is the number of its columns and their values; a text is as long as its length says. */
export const PGOUTPUT_TUPLES: TupleFormat = {
  count: (reader) => reader.int16(),
  text: (reader) => reader.text(reader.length()),
  skipText: (reader) => {
    reader.skip(reader.length());
  },
};
