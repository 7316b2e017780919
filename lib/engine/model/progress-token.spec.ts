import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import { deflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HaltError } from './halt.js';
import {
  decodeProgress,
  encodeProgress,
  encodeTables,
} from './progress-token.js';
import {
  tableKey,
  type SnapshotProgress,
  type TableProgress,
} from './snapshot-progress.js';

const name = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 15 })
  .filter((text) => !text.includes('\0') && Buffer.byteLength(text) <= 63);
const names = fc.uniqueArray(
  fc.oneof(name, fc.constantFrom('__proto__', 'constructor', 'a.b', '"')),
  { minLength: 1, maxLength: 3 },
);
const value = fc
  .string({ unit: 'binary' })
  .filter((text) => !text.includes('\0'));

const bound = names.chain((columns) =>
  fc
    .array(value, { minLength: columns.length, maxLength: columns.length })
    .map((values) => ({
      order: columns.map((column) => [column, 'pg_catalog.int4'] as const),
      values,
    })),
);
const lacking = names.chain((columns) =>
  fc
    .array(
      fc.array(value, { minLength: columns.length, maxLength: columns.length }),
      { minLength: 1, maxLength: 3 },
    )
    .map((keys) => ({ columns, keys })),
);
const tableState = fc.oneof(
  fc.constantFrom('uncleared', 'waiting', 'done').map((state) => ({ state })),
  fc.record({
    state: fc.constant('copying' as const),
    pages: fc.integer({ min: 1 }),
  }),
  fc.record({
    state: fc.constant('reading' as const),
    bound,
    lacking: fc.option(lacking),
  }),
  fc.record({
    state: fc.constant('reading' as const),
    bound: fc.constant(null),
    lacking,
  }),
);
const progress: fc.Arbitrary<SnapshotProgress> = fc.record({
  floor: fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn }),
  complete: fc.boolean(),
  uncertain: fc.option(fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn })),
  tables: fc.uniqueArray(
    fc
      .tuple(
        fc.record({
          schema: name,
          table: name,
          oid: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
        }),
        tableState,
      )
      .map(([named, state]): TableProgress => ({ ...named, ...state })),
    { selector: tableKey, maxLength: 5 },
  ),
});

const SOME: SnapshotProgress = {
  floor: 0x1_0000_0010n,
  complete: false,
  uncertain: null,
  tables: [
    { schema: 'public', table: 'a.b', oid: 16384, state: 'done' },
    {
      schema: 'public',
      table: 'Orders',
      oid: 4_294_967_295,
      state: 'reading',
      bound: {
        order: [
          ['id', 'pg_catalog.int4'],
          ['line', 'pg_catalog.int4'],
        ],
        values: ['SECRET-7', '2'],
      },
      lacking: { columns: ['id'], keys: [['SECRET-3']] },
    },
    { schema: 'public', table: 'later', oid: 7, state: 'waiting' },
  ],
};

/** A token with these contents, as if it had been written here. */
function forged(states: unknown, tables: unknown = T): string {
  return sealed(
    Buffer.from(JSON.stringify(states)).toString('base64url'),
    compressed(JSON.stringify(tables)),
  );
}

function sealed(states: string, list: string): string {
  const text = `${states}:${list}`;
  const sum = createHash('sha256').update(text).digest('base64url');
  return `nestjs-replicant-snapshot:1:${sum}:${text}`;
}

function compressed(text: string): string {
  return deflateRawSync(text).toString('base64url');
}

/** One table. */
const T = [['p', ['t'], [7]]];

/** What tells the state of {@link T}, when that is being read. */
function reading(upTo: unknown, without: unknown): unknown {
  return ['0/1', false, null, [['r', 1]], [[upTo, without]]];
}

/** What tells that so many tables are done. */
function done(count: number): unknown {
  return ['0/1', true, null, [['d', count]], []];
}

function refusal(token: string): HaltError {
  try {
    decodeProgress(token);
  } catch (error) {
    if (error instanceof HaltError) return error;
    throw error;
  }
  throw new Error('The token was read.');
}

describe('the progress of a snapshot', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(progress, (written) => {
        const token = encodeProgress(written);
        expect(decodeProgress(token)).toEqual(written);
        expect(token).toMatch(/^[\x21-\x7e]+$/);
      }),
    );
  });

  it('is refused when a character of it is another, or missing, or added', () => {
    fc.assert(
      fc.property(
        progress,
        fc.nat(),
        fc.string({ maxLength: 2 }),
        fc.nat({ max: 2 }),
        (written, seed, inserted, removed) => {
          const token = encodeProgress(written);
          const at = seed % (token.length + 1);
          const mutated =
            token.slice(0, at) + inserted + token.slice(at + removed);
          if (mutated === token) return;
          expect(refusal(mutated).halt.code).toBe('snapshot_progress_invalid');
        },
      ),
      { numRuns: 500 },
    );
  });

  it('is refused when it is cut off anywhere', () => {
    const token = encodeProgress(SOME);
    for (let length = 0; length < token.length; length += 1)
      expect(refusal(token.slice(0, length)).halt.code).toBe(
        'snapshot_progress_invalid',
      );
  });

  it.each([
    ['nothing', ''],
    ['a JSON text', '{"floor":"0/1"}'],
    ['another version', 'nestjs-replicant-snapshot:2:abc:abc'],
    ['something compressed', '\u001f\u008b\b\0\0'],
    [
      'a text that is too long',
      `nestjs-replicant-snapshot:1:${'a'.repeat(17 * 1024 * 1024)}`,
    ],
  ])('is refused when it is %s', (_what, token) => {
    expect(refusal(token).halt.code).toBe('snapshot_progress_invalid');
  });

  it.each<[string, unknown]>([
    ['an object', { floor: '0/1', complete: false, tables: [] }],
    ['an object with a prototype', { __proto__: [], length: 5 }],
    ['too short', ['0/1', false, null, [['d', 1]]]],
    ['too long', ['0/1', false, null, [['d', 1]], [], 1]],
    ['another position that is none', ['0/1', false, 'x', [['d', 1]], []]],
    ['no position', [1, false, null, [['d', 1]], []]],
    ['a position out of range', ['1/123456789', false, null, [['d', 1]], []]],
    [
      'a position written otherwise',
      ['0/00000001', false, null, [['d', 1]], []],
    ],
    ['a flag that is none', ['0/1', 'false', null, [['d', 1]], []]],
    ['states that are no list', ['0/1', false, null, { length: 1 }, []]],
    ['a state that is a text', ['0/1', false, null, ['d'], []]],
    ['a state that is none', ['0/1', false, null, [['constructor', 1]], []]],
    ['no state', ['0/1', false, null, [], []]],
    ['states of more tables', ['0/1', false, null, [['d', 2]], []]],
    ['states of a part of a table', ['0/1', false, null, [['d', 0.5]], []]],
    ['a negative number', ['0/1', false, null, [['d', -1]], []]],
    [
      'states of endlessly many tables',
      ['0/1', false, null, [['d', 1e300]], []],
    ],
    ['a number that is a text', ['0/1', false, null, [['d', '1']], []]],
    ['a state with more', ['0/1', false, null, [['d', 1]], [[null, null]]]],
    ['a state with less', ['0/1', false, null, [['r', 1]], []]],
    ['a page that is none', ['0/1', false, null, [['c', 1]], [0]]],
    ['nothing left to read', reading(null, null)],
    [
      'a bound with too few values',
      reading(
        [
          [
            ['a', 'o'],
            ['b', 'o'],
          ],
          ['1'],
        ],
        null,
      ),
    ],
    ['a bound with a column of one text', reading([[['a']], ['1']], null)],
    [
      'a bound with a column of three texts',
      reading([[['a', 'o', 'o']], ['1']], null),
    ],
    ['a bound with a number', reading([[['a', 'o']], [1]], null)],
    ['a bound with NULL', reading([[['a', 'o']], [null]], null)],
    ['a bound without columns', reading([[], []], null)],
    [
      'a bound with a column twice',
      reading(
        [
          [
            ['a', 'o'],
            ['a', 'o'],
          ],
          ['1', '1'],
        ],
        null,
      ),
    ],
    ['a value with a NUL', reading([[['a', 'o']], ['\0']], null)],
    ['lacking rows without one', reading([[['a', 'o']], ['1']], [['a'], []])],
    ['lacking rows with too few values', reading(null, [['a', 'b'], [['1']]])],
  ])('is refused when its states are %s', (_what, states) => {
    expect(refusal(forged(states)).halt.code).toBe('snapshot_progress_invalid');
  });

  it.each<[string, unknown]>([
    ['no list', { length: 1 }],
    ['a text', ['public.t']],
    ['without a schema', [[null, ['t'], [7]]]],
    ['without names', [['p', null, [7]]]],
    ['without OIDs', [['p', ['t']]]],
    ['with too few OIDs', [['p', ['t', 'u'], [7]]]],
    ['with too many OIDs', [['p', ['t'], [7, 1]]]],
    ['with an OID that is a text', [['p', ['t'], ['7']]]],
    ['with an OID that is none', [['p', ['t'], [0]]]],
    ['with a negative OID', [['p', ['t'], [-1]]]],
    ['with an OID that is too large', [['p', ['t'], [2 ** 32]]]],
    ['with an empty name', [['p', [''], [7]]]],
    ['with a name that is too long', [['p', ['t'.repeat(190)], [7]]]],
    ['with a name with a NUL', [['p', ['t\0'], [7]]]],
    [
      'with a schema without tables',
      [
        ['p', ['t'], [7]],
        ['q', [], []],
      ],
    ],
  ])('is refused when its tables are %s', (_what, tables) => {
    expect(refusal(forged(done(1), tables)).halt.code).toBe(
      'snapshot_progress_invalid',
    );
  });

  it.each<[string, unknown]>([
    ['one twice', [['p', ['t', 't'], [7, 1]]]],
    [
      'in two lists of a schema',
      [
        ['p', ['t'], [7]],
        ['p', ['u'], [1]],
      ],
    ],
  ])('is refused when its tables are %s', (_what, tables) => {
    expect(refusal(forged(done(2), tables)).halt.code).toBe(
      'snapshot_progress_invalid',
    );
  });

  it('is refused when a run of states is written in two parts', () => {
    const two = [['p', ['t', 'u'], [7, 1]]];
    const parts = [
      '0/1',
      true,
      null,
      [
        ['d', 1],
        ['d', 1],
      ],
      [],
    ];
    expect(decodeProgress(forged(done(2), two)).tables.length).toBe(2);
    expect(refusal(forged(parts, two)).halt.code).toBe(
      'snapshot_progress_invalid',
    );
  });

  it('is refused when its list of tables is not compressed, or would need much memory', () => {
    const states = Buffer.from(JSON.stringify(done(1))).toString('base64url');
    const bomb = compressed(`[${' '.repeat(17 * 1024 * 1024)}]`);
    for (const list of ['', 'AAAA', bomb])
      expect(refusal(sealed(states, list)).halt.code).toBe(
        'snapshot_progress_invalid',
      );
  });

  it('is read when it was forged to be what is written', () => {
    expect(decodeProgress(forged(done(1)))).toEqual({
      floor: 1n,
      complete: true,
      uncertain: null,
      tables: [{ schema: 'p', table: 't', oid: 7, state: 'done' }],
    });
    expect(
      decodeProgress(forged(reading([[['a', 'o']], ['1']], null))).tables,
    ).toMatchObject([{ state: 'reading', bound: { values: ['1'] } }]);
  });

  it('is read where the encoding of the database has shorter names than UTF-8', () => {
    // Of LATIN1 and of KOI8R.
    for (const text of ['é', '│'].map((character) => character.repeat(63))) {
      const written = {
        ...SOME,
        tables: [{ schema: text, table: text, oid: 7, state: 'done' as const }],
      };
      expect(decodeProgress(encodeProgress(written))).toEqual(written);
    }
  });

  it('is short with thousands of tables', () => {
    const tables = Array.from({ length: 5_000 }, (_, place) => ({
      schema: 'public',
      table: `table_${place}`,
      oid: 16_384 + 5 * place,
      state: place < 2_000 ? ('done' as const) : ('waiting' as const),
    }));
    const written = { ...SOME, tables };
    const token = encodeProgress(written);
    expect(token.length).toBeLessThan(20_000);
    expect(encodeProgress(written, encodeTables(tables))).toBe(token);
    expect(decodeProgress(token)).toEqual(written);
  });

  it('shows nothing of its content when it is refused', () => {
    const token = encodeProgress(SOME);
    const secret = [
      token.slice(0, -1),
      forged(reading([[['a', 'o']], ['SECRET-7', '']], null)),
      'SECRET-7',
    ];
    for (const bad of secret) {
      const error = refusal(bad);
      const shown = inspect(error, { depth: null, showHidden: true });
      for (const text of [shown, JSON.stringify(error.halt)]) {
        expect(text).not.toContain('SECRET');
        expect(text).not.toContain(token.slice(80, 120));
      }
    }
  });
});
