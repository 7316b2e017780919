import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseArrayLiteral } from './array-literal.js';
import { asText } from './value-parser.js';

type Leaf = string | null;
type Nested = Leaf | Nested[];

const upper = (text: string) => text.toUpperCase();
const texts = (literal: string) => parseArrayLiteral(literal, asText, ',');

/** As `array_out` of the server writes it. */
function render(value: unknown, delimiter: string): string {
  if (value === null) return 'NULL';
  if (Array.isArray(value))
    return `{${value.map((item) => render(item, delimiter)).join(delimiter)}}`;
  if (typeof value !== 'string') throw new TypeError('no array of texts');
  const bare =
    value !== '' &&
    !/^null$/i.test(value) &&
    !/["\\{} \t\n\v\f\r]/.test(value) &&
    !value.includes(delimiter);
  return bare ? value : `"${value.replace(/["\\]/g, '\\$&')}"`;
}

/** A rectangular array of these sizes, filled from `leaves` in order. */
function shape(sizes: readonly number[], leaves: Leaf[]): Nested {
  const [size, ...rest] = sizes;
  if (size === undefined) return leaves.shift() ?? null;
  return Array.from({ length: size }, () => shape(rest, leaves));
}

const leaf: fc.Arbitrary<Leaf> = fc.oneof(
  fc.constantFrom(null, 'NULL', 'null', '', '{}', ' ', '\\', '"', ',', ';'),
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...'{}",;\\ NULab\n'.split('')) }),
);

const arrays: fc.Arbitrary<Nested> = fc
  .oneof(
    fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 1, maxLength: 6 }),
    fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 2 }),
    fc.constant([0]),
  )
  .chain((sizes) => {
    const count = sizes.reduce((product, size) => product * size, 1);
    return fc
      .array(leaf, { minLength: count, maxLength: count })
      .map((leaves) => shape(sizes, [...leaves]));
  });

describe('parseArrayLiteral', () => {
  it('reads an empty array', () => {
    expect(texts('{}')).toEqual([]);
  });

  it('reads quotes, backslashes, braces, blanks and line breaks as data', () => {
    expect(
      texts(
        '{"NULL",NULL,"","a\\"b","a\\\\b","{x,y}"," sp ",é😀,"\n\t","}","\\\\\\""}',
      ),
    ).toEqual([
      'NULL',
      null,
      '',
      'a"b',
      'a\\b',
      '{x,y}',
      ' sp ',
      'é😀',
      '\n\t',
      '}',
      '\\"',
    ]);
  });

  it('takes only a bare NULL for NULL, at any depth', () => {
    expect(texts('{NULL}')).toEqual([null]);
    expect(texts('{NULLABLE,NUL,null}')).toEqual(['NULLABLE', 'NUL', 'null']);
    expect(texts('{{{NULL,"NULL"},{x,NULL}}}')).toEqual([
      [
        [null, 'NULL'],
        ['x', null],
      ],
    ]);
  });

  it('hands elements but not NULL to the element parser', () => {
    expect(parseArrayLiteral('{{a,NULL},{"b c",d}}', upper, ',')).toEqual([
      ['A', null],
      ['B C', 'D'],
    ]);
  });

  it('separates elements by the given delimiter only', () => {
    expect(parseArrayLiteral('{(1,1),(0,0);NULL}', asText, ';')).toEqual([
      '(1,1),(0,0)',
      null,
    ]);
    expect(texts('{a;b}')).toEqual(['a;b']);
  });

  it('reads six dimensions and no more', () => {
    expect(texts('{{{{{{1}}}}}}')).toEqual([[[[[['1']]]]]]);
    expect(texts('{{{{{{{1}}}}}}}')).toBeNull();
    expect(texts(`${'{'.repeat(5_000)}1${'}'.repeat(5_000)}`)).toBeNull();
    expect(texts('{'.repeat(1_000_000))).toBeNull();
  });

  it.each([
    ['explicit bounds', '[2:4]={1,2,3}'],
    ['explicit bounds in two dimensions', '[0:0][2:3]={{1,2}}'],
    ['no text', ''],
    ['no brace', 'abc'],
    ['one brace', '{'],
    ['no closing brace', '{1'],
    ['no closing brace inside', '{{1}'],
    ['an element after the end', '{1}2'],
    ['a brace after the end', '{1}}'],
    ['two arrays', '{1}{2}'],
    ['a leading delimiter', '{,1}'],
    ['a trailing delimiter', '{1,}'],
    ['a doubled delimiter', '{1,,2}'],
    ['nothing but a delimiter', '{,}'],
    ['text after a quoted element', '{"a"b}'],
    ['text before a quoted element', '{a"b"}'],
    ['text after a nested array', '{{1}2}'],
    ['no delimiter between nested arrays', '{{1}{2}}'],
    ['an open quote', '{"a}'],
    ['an open quote after a backslash', '{"a\\"}'],
    ['an unquoted backslash', '{a\\b}'],
    ['an unquoted brace', '{a{b}'],
    ['an unquoted blank', '{1, 2}'],
    ['an empty nested array', '{{}}'],
    ['elements beside arrays', '{1,{2}}'],
    ['arrays beside elements', '{{1},2}'],
    ['rows of different length', '{{1,2},{3}}'],
    ['sub-arrays of different length', '{{{1}},{{1},{2}}}'],
  ])('refuses %s', (_, literal) => {
    expect(texts(literal)).toBeNull();
  });

  it('reads back what the server writes for any array', () => {
    fc.assert(
      fc.property(arrays, fc.constantFrom(',', ';'), (array, delimiter) => {
        const literal = render(array, delimiter);
        expect(parseArrayLiteral(literal, asText, delimiter)).toEqual(array);
      }),
    );
  });

  it('never throws, and an array that it accepts is one that the server can write', () => {
    const nearly = fc
      .string({ unit: fc.constantFrom(...'{},"\\ NULa'.split('')) })
      .map((inside) => `{${inside}}`);
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearly), (literal) => {
        const array = texts(literal);
        expect(array && texts(render(array, ','))).toEqual(array);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['a plain element', `{"${'x '.repeat(1_000_000)}"}`],
    ['an element of backslashes', `{"${'\\\\'.repeat(1_000_000)}"}`],
    ['an unquoted element', `{${'x'.repeat(2_000_000)}}`],
    ['quoted elements', `{${'"a b",'.repeat(300_000)}NULL}`],
    ['nested arrays', `{${'{1},'.repeat(500_000)}{1}}`],
    ['an element that is not closed', `{"${'\\"'.repeat(1_000_000)}}`],
  ])('reads 2 MB of %s in linear time', (_, literal) => {
    // CPU time, which a busy machine does not stretch as it does the time on the clock.
    const start = process.cpuUsage();
    texts(literal);
    const { user, system } = process.cpuUsage(start);
    expect(user + system).toBeLessThan(1_000_000);
  });
});
