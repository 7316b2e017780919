import type { ByteReader } from '../byte-reader.js';
import { MalformedMessage } from '../malformed-message.js';

/** A text in so many bytes, of which the last is zero. */
export function readTerminated(reader: ByteReader, length: number): string {
  if (length === 0) throw new MalformedMessage('text without end');
  const text = reader.text(length - 1);
  if (reader.uint8() !== 0) throw new MalformedMessage('text without end');
  return text;
}

/** What every message but the first has behind its tag: of the flags, none is defined. */
export function readFlags(reader: ByteReader): void {
  if (reader.uint8() !== 0) throw new MalformedMessage('unknown flags');
}
