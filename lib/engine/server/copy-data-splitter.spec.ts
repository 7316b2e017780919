import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CopyDataSplitter } from './copy-data-splitter.js';

/** What came out: messages of CopyData, and what lay between them. */
type Part = readonly ['copy data' | 'others', string];

/** The head of a message: its letter, and the length that it claims. */
function head(letter: string, length: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes.write(letter);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

function message(letter: string, content: Uint8Array | string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([head(letter, 4 + bytes.length), bytes]);
}

/** What comes out of the splitter for these chunks; each is overwritten as soon as it was taken. */
function split(chunks: readonly Buffer[]): Part[] {
  const parts: Part[] = [];
  const splitter = new CopyDataSplitter(
    (bytes, start, end) => {
      parts.push(['copy data', bytes.toString('latin1', start, end)]);
    },
    (bytes) => {
      const text = bytes.toString('latin1');
      const last = parts.at(-1);
      if (last?.[0] === 'others') parts.pop();
      parts.push(['others', last?.[0] === 'others' ? last[1] + text : text]);
    },
  );
  for (const chunk of chunks) {
    const once = Buffer.from(chunk);
    splitter.take(once);
    once.fill(0x64);
  }
  return parts;
}

/** What must come out of whole messages. */
function partsOf(messages: readonly Buffer[]): Part[] {
  return messages.reduce<Part[]>((parts, whole) => {
    const last = parts.at(-1);
    if (whole.toString('latin1', 0, 1) === 'd')
      return [...parts, ['copy data', whole.toString('latin1', 5)]];
    const text = whole.toString('latin1');
    return last?.[0] === 'others'
      ? [...parts.slice(0, -1), ['others', last[1] + text]]
      : [...parts, ['others', text]];
  }, []);
}

function cut(bytes: Buffer, positions: readonly number[]): Buffer[] {
  const edges = [0, ...positions.toSorted((a, b) => a - b), bytes.length];
  return edges
    .slice(1)
    .map((end, index) => bytes.subarray(edges[index], end))
    .filter(({ length }) => length > 0);
}

const STREAM = [
  message('W', '\0\0\0'),
  message('d', 'first'),
  message('d', ''),
  message('N', 'dddd'),
  message('S', 'a\0b\0'),
  message('d', 'd\0\0\0\x05ddddd'),
  message('c', ''),
  message('d', 'last'),
  message('Z', 'I'),
];
const BYTES = Buffer.concat(STREAM);

describe('the splitter of CopyData messages', () => {
  it('gives the content of each message and passes all others on, in order', () => {
    expect(split([BYTES])).toEqual(partsOf(STREAM));
    expect(partsOf(STREAM)).toContainEqual(['copy data', 'd\0\0\0\x05ddddd']);
  });

  it('gives the same wherever the bytes are cut in three, and byte by byte', () => {
    const whole = partsOf(STREAM);
    for (let first = 0; first <= BYTES.length; first++)
      for (let second = first; second <= BYTES.length; second++)
        expect(split(cut(BYTES, [first, second]))).toEqual(whole);
    expect(split([...BYTES].map((byte) => Buffer.of(byte)))).toEqual(whole);
  });

  it('gives the same for any messages, however they are cut', () => {
    const letters = fc.constantFrom('d', 'd', 'd', 'N', 'S', 'E', 'c');
    const content = fc.uint8Array({ maxLength: 40 });
    const any = fc
      .tuple(letters, content)
      .map(([letter, bytes]) => message(letter, bytes));
    fc.assert(
      fc.property(
        fc.array(any, { maxLength: 20 }),
        fc.array(fc.nat(999), { maxLength: 30 }),
        (messages, cuts) => {
          const bytes = Buffer.concat(messages);
          const positions = cuts.map((at) => at % (bytes.length + 1));
          expect(split(cut(bytes, positions))).toEqual(partsOf(messages));
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('copies nothing of a message that lies whole in a chunk', () => {
    const seen: Buffer[] = [];
    const splitter = new CopyDataSplitter(
      (bytes) => seen.push(bytes),
      () => {},
    );
    const bytes = Buffer.concat(STREAM.slice(0, -1));
    splitter.take(bytes);
    expect(seen).toHaveLength(4);
    for (const buffer of seen) expect(buffer).toBe(bytes);
  });

  it('gathers a large message in one piece of memory, so that its time grows with its size', () => {
    const content = Buffer.alloc(8 << 20, 'content');
    const bytes = Buffer.concat([message('d', content), message('d', 'next')]);
    const pieces: Buffer[] = [];
    const splitter = new CopyDataSplitter(
      (buffer, start, end) => pieces.push(buffer.subarray(start, end)),
      () => {},
    );
    // By far too many for copies of all that came before.
    for (let at = 0; at < bytes.length; at += 100)
      splitter.take(bytes.subarray(at, at + 100));
    expect(pieces[0]?.equals(content)).toBe(true);
    expect(pieces[0]?.buffer.byteLength).toBe(content.length + 5);
    expect(pieces[1]?.toString()).toBe('next');
  });

  it.each([
    ['a length that does not count itself', head('d', 3)],
    ['no length', head('d', 0)],
    ['more than the server can send', head('d', 0x4000_0001)],
    ['the largest length', head('d', 0xffff_ffff)],
    ['a length that does not count itself, of another message', head('N', 3)],
  ])('throws for %s, whole or cut, and gives nothing', (_, bytes) => {
    for (let at = 0; at < bytes.length; at++) {
      const parts: unknown[] = [];
      const splitter = new CopyDataSplitter(
        () => parts.push('copy data'),
        () => parts.push('others'),
      );
      expect(() => {
        for (const chunk of cut(bytes, [at])) splitter.take(chunk);
      }).toThrow(RangeError);
      expect(parts).toEqual([]);
    }
  });

  it('leaves it to the parser what to make of another message of any length', () => {
    const bytes = Buffer.concat([head('H', 0xffff_ffff), Buffer.from('d')]);
    expect(split([bytes])).toEqual([['others', bytes.toString('latin1')]]);
  });
});
