import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { builtinTypeNamed } from './builtin-types.js';
import { exactParser } from './exact-parsers.js';

function exact(type: string, text: string): unknown {
  return exactParser(builtinTypeNamed(type)?.oid ?? 0)(text);
}

/** Text with the characters that numbers, times and bytea are made of. */
const lookalikes = fc.oneof(
  fc.string(),
  fc.string({
    unit: fc.constantFrom(...'0123456789-+.:eExTZ \\naNIfity'.split('')),
  }),
  fc.string({ unit: 'binary' }),
);

describe('bool', () => {
  it('is true or false', () => {
    expect(exact('bool', 't')).toBe(true);
    expect(exact('bool', 'f')).toBe(false);
  });

  it.each(['', 'T', '1', 'x', 'tt'])('leaves %j as text', (text) => {
    expect(exact('bool', text)).toBe(text);
  });
});

describe.each(['int2', 'int4', 'oid'])('%s', (type) => {
  it.each([
    ['0', 0],
    ['-0', 0],
    ['-1', -1],
    ['32767', 32767],
    ['-2147483648', -2147483648],
    ['2147483647', 2147483647],
    ['4294967295', 4294967295],
  ])('%s is a number, unsigned above 2^31', (text, value) => {
    expect(exact(type, text)).toBe(value);
  });

  it.each([
    '',
    '-',
    '+1',
    ' 1',
    '1 ',
    '0x10',
    '1e3',
    '1.0',
    '١',
    '12345678901',
  ])('leaves %j as text', (text) => {
    expect(exact(type, text)).toBe(text);
  });

  it('is never another number than the text says', () => {
    fc.assert(
      fc.property(lookalikes, (text) => {
        const value = exact(type, text);
        const expected =
          typeof value === 'number' ? Number(BigInt(text)) : text;
        expect(value).toBe(expected);
      }),
    );
  });
});

describe.each(['float4', 'float8'])('%s', (type) => {
  it.each([
    ['0.1', 0.1],
    ['-0', -0],
    ['0', 0],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['-Infinity', Number.NEGATIVE_INFINITY],
    ['0.30000000000000004', 0.1 + 0.2],
    ['1.7976931348623157e+308', Number.MAX_VALUE],
    ['5e-324', Number.MIN_VALUE],
    ['3.4e+38', 3.4e38],
    ['1e-45', 1e-45],
  ])('%s is a number', (text, value) => {
    expect(exact(type, text)).toBe(value);
  });

  it.each([
    '',
    ' ',
    ' 1',
    '1 ',
    '.',
    '-',
    'e',
    '1e',
    '1-1',
    '0x10',
    '0b1',
    '1_0',
    '+Infinity',
    'infinity',
    'nan',
    '1e400',
  ])('leaves %j as text', (text) => {
    expect(exact(type, text)).toBe(text);
  });

  it('keeps every number', () => {
    fc.assert(
      fc.property(fc.double(), (value) => {
        const text = Object.is(value, -0) ? '-0' : String(value);
        expect(exact(type, text)).toBe(value);
      }),
    );
  });

  it('is never NaN or infinite by mistake', () => {
    fc.assert(
      fc.property(lookalikes, (text) => {
        const value = exact(type, text);
        const finite = typeof value === 'number' && Number.isFinite(value);
        expect(String(value)).toBe(finite ? String(Number(text)) : text);
      }),
    );
  });
});

describe('bytea', () => {
  it('is a Buffer of the same bytes', () => {
    const bytes = Buffer.from([0xde, 0xad, 0xbe, 0xef, 0x00, 0xff, 0x5c, 0x27]);
    expect(exact('bytea', '\\xdeadbeef00ff5c27')).toEqual(bytes);
    expect(exact('bytea', '\\x')).toEqual(Buffer.alloc(0));
  });

  it('is read once, also when the bytes look like bytea text', () => {
    expect(exact('bytea', '\\x5c783030')).toEqual(Buffer.from('\\x00'));
  });

  it.each([
    ['the escape format', '\\336\\255'],
    ['nothing', ''],
    ['an odd digit', '\\xabc'],
    ['no hexadecimal digit', '\\xzz'],
    ['a letter whose low byte is one', '\\x\u0161\u0161'],
    ['a blank at the end', '\\xab '],
    ['an upper-case prefix', '\\Xab'],
  ])('leaves %s as text', (_, text) => {
    expect(exact('bytea', text)).toBe(text);
  });

  it('keeps all bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (array) => {
        const bytes = Buffer.from(array);
        expect(exact('bytea', `\\x${bytes.toString('hex')}`)).toEqual(bytes);
      }),
    );
  });

  it('is never other bytes than the text says', () => {
    fc.assert(
      fc.property(lookalikes, (rest) => {
        const text = `\\x${rest}`;
        const value = exact('bytea', text);
        const said = Buffer.isBuffer(value)
          ? `\\x${value.toString('hex')}`
          : value;
        expect(said).toBe(Buffer.isBuffer(value) ? text.toLowerCase() : text);
      }),
    );
  });
});

/** What becomes of a moment as the server prints it, and what shall. */
function readMoment(micros: bigint): { value: unknown; expected: string } {
  const rest = ((micros % 1000n) + 1000n) % 1000n;
  const iso = new Date(Number((micros - rest) / 1000n)).toISOString();
  const digits = iso.slice(20, 23) + String(rest).padStart(3, '0');
  const fraction = digits.replace(/0+$/, '');
  const seconds = iso.slice(0, 19).replace('T', ' ');
  const printed = fraction === '' ? seconds : `${seconds}.${fraction}`;
  return {
    value: exact('timestamptz', `${printed}+00`),
    expected: `${iso.slice(0, 19)}.${digits}Z`,
  };
}

describe('timestamptz', () => {
  it.each([
    ['2026-01-02 03:04:05.123456+00', '2026-01-02T03:04:05.123456Z'],
    ['2026-01-02 03:04:05.123457+00', '2026-01-02T03:04:05.123457Z'],
    ['2026-01-02 03:04:05+00', '2026-01-02T03:04:05.000000Z'],
    ['2026-01-02 03:04:05.1+00', '2026-01-02T03:04:05.100000Z'],
    ['2026-01-02 03:04:05.000001+00', '2026-01-02T03:04:05.000001Z'],
    ['0001-01-01 00:00:00+00', '0001-01-01T00:00:00.000000Z'],
    ['9999-12-31 23:59:59.999999+00', '9999-12-31T23:59:59.999999Z'],
  ])('%s is ISO 8601 in UTC with six digits', (text, value) => {
    expect(exact('timestamptz', text)).toBe(value);
  });

  it.each([
    'infinity',
    '-infinity',
    '0044-03-15 00:00:00+00 BC',
    '10000-01-01 00:00:00+00',
    '294276-12-31 23:59:59.999999+00',
    '2026-01-02 03:04:05+01',
    '2026-01-02 03:04:05+05:30',
    '2026-01-02 03:04:05-00',
    '2026-01-02 03:04:05',
    '2026-01-02 03:04:05.+00',
    '2026-01-02 03:04:05.1234567+00',
    '2026-01-02 03:04:05,5+00',
    '2026-01-02 03:04:05.12a+00',
    '2026-01-02T03:04:05+00',
    '02/01/2026 03:04:05+00',
    '202a-01-02 03:04:05+00',
    '+00',
    '',
  ])('leaves %j as text', (text) => {
    expect(exact('timestamptz', text)).toBe(text);
  });

  it('keeps every microsecond of the years 1 to 9999, in an order that is the order of time', () => {
    const moments = fc.bigInt({
      min: -62_135_596_800_000_000n,
      max: 253_402_300_799_999_999n,
    });
    fc.assert(
      fc.property(moments, moments, (a, b) => {
        const first = readMoment(a);
        const second = readMoment(b);
        expect(first.value).toBe(first.expected);
        expect(String(first.value) < String(second.value)).toBe(a < b);
      }),
    );
  });
});

describe('timestamp', () => {
  it.each([
    ['2026-01-02 03:04:05.123456', '2026-01-02T03:04:05.123456'],
    ['2026-01-02 03:04:05.5', '2026-01-02T03:04:05.5'],
    ['2026-01-02 03:04:05', '2026-01-02T03:04:05'],
  ])('%s is ISO 8601 without an offset', (text, value) => {
    expect(exact('timestamp', text)).toBe(value);
  });

  it.each([
    'infinity',
    '-infinity',
    '0044-03-15 00:00:00 BC',
    '10000-01-01 00:00:00',
    '2026-01-02 03:04:05.',
    '2026-01-02 03:04:05.1234567',
    '2026-01-02 03:04:05+00',
    '2026-01-02',
    '',
  ])('leaves %j as text', (text) => {
    expect(exact('timestamp', text)).toBe(text);
  });
});

it.each([
  ['date', '2026-01-02'],
  ['date', 'infinity'],
  ['date', '-infinity'],
  ['date', '0044-03-15 BC'],
  ['date', '10000-01-01'],
  ['time', '24:00:00'],
  ['time', '23:59:59.999999'],
  ['timetz', '24:00:00+00'],
  ['timetz', '12:34:56.789012-03:30'],
  ['timetz', '12:00:00+05:53:28'],
  ['interval', '1 mon -1 days'],
  ['interval', '-00:00:00.000001'],
  ['interval', '178000000 years'],
  ['interval', '1 day 25:00:00'],
  ['int8', '9007199254740993'],
  ['int8', '-9223372036854775808'],
  ['numeric', 'NaN'],
  ['numeric', '-Infinity'],
  ['numeric', '1.10'],
  ['numeric', '9'.repeat(100)],
  ['numeric', '0.000000000000000000000000000001'],
  ['money', '$92,233,720,368,547,758.07'],
  ['money', '-$12.34'],
  ['money', '1.234,56 €'],
  ['money', '($12.34)'],
  ['json', '{"a":1, "a":2 , "b":  1.0}'],
  ['jsonb', '{"d": 1.10, "e": 1e400, "n": 12345678901234567890}'],
  ['jsonb', 'null'],
  ['jsonb', '"null"'],
  ['jsonb', '""'],
  ['jsonb', '0'],
  ['jsonb', 'false'],
  ['text', ''],
  ['text', 'NULL'],
  ['bpchar', 'ab   '],
  ['char', 'x'],
  ['name', 'nm'],
  ['bit', '101010101'],
  ['varbit', '1'],
  ['inet', '::1'],
  ['cidr', '10.0.0.0/8'],
  ['macaddr8', '08:00:2b:01:02:03:04:05'],
  ['xml', '<a b="c"/>'],
  ['tsvector', "'fat':1A 'o''brien':2"],
  ['tsquery', "'fat' & !'rat'"],
  ['pg_lsn', 'FF/FFFFFFFF'],
  ['uuid', '00000000-0000-0000-0000-000000000001'],
  ['xid', '4294967295'],
  ['xid8', '18446744073709551615'],
  ['int2vector', '1 2 3'],
  ['oidvector', '26 27'],
  ['point', '(1,-0)'],
  ['box', '(1,1),(0,0)'],
  ['tstzrange', '["2026-01-01 00:00:00+00",infinity)'],
  ['numrange', 'empty'],
  ['numrange', '[1.5,)'],
  ['int4multirange', '{[1,3),[5,8)}'],
  ['int4multirange', '{}'],
])('%s %s stays as the server printed it', (type, text) => {
  expect(builtinTypeNamed(type)).toBeDefined();
  expect(exact(type, text)).toBe(text);
});
