import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CopiedRows, decodeRow } from './copy-text.js';

/** As `CopyAttributeOutText` of the server writes a value. */
function encoded(value: string | null): string {
  if (value === null) return '\\N';
  const letters: Record<string, string> = {
    '\b': 'b',
    '\f': 'f',
    '\n': 'n',
    '\r': 'r',
    '\t': 't',
    '\v': 'v',
  };
  return value.replaceAll(
    /[\\\b\f\n\r\t\v]/g,
    (character) => `\\${letters[character] ?? character}`,
  );
}

describe('decodeRow', () => {
  it.each([
    ['one value', 'a', ['a']],
    ['several values', '1\tb\t', ['1', 'b', '']],
    ['NULL and what looks like it', '\\N\t\\\\N\tN\t', [null, '\\N', 'N', '']],
    ['control characters', '\\b\\f\\n\\r\\t\\v', ['\b\f\n\r\t\v']],
    ['control characters as they are', '\u0001\u001f', ['\u0001\u001f']],
    ['a backslash before a letter', '\\\\n\t\\\\\\n', ['\\n', '\\\n']],
    ['a backslash before a character of two units', '\\😀', ['😀']],
    ['the end of data as a value', '\\\\.', ['\\.']],
    ['no column', '', ['']],
  ])('reads %s', (_what, line, values) => {
    expect(decodeRow(line)).toEqual(values);
  });

  it('reads whatever the server writes', () => {
    const character = fc.oneof(
      fc.constantFrom('\\', 'N', 'n', '.', '\b', '\f', '\n', '\r', '\t', '\v'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    );
    const value = fc.option(fc.string({ unit: character, maxLength: 8 }));
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 5 }), (row) => {
        expect(decodeRow(row.map(encoded).join('\t'))).toEqual(row);
      }),
    );
  });
});

describe('rows that were copied', () => {
  it('are read when they are asked for', () => {
    const rows = new CopiedRows(['1\tx', '2\t\\N']);
    expect(rows.length).toBe(2);
    expect([...rows]).toEqual([
      ['1', 'x'],
      ['2', null],
    ]);
    expect(rows.at(0)).toEqual(['1', 'x']);
    expect(rows.at(-1)).toEqual(['2', null]);
    expect(rows.at(2)).toBeUndefined();
  });
});
