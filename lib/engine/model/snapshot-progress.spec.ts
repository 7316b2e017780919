import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HaltError } from './halt.js';
import {
  decodeProgress,
  encodeProgress,
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

/** A token with this content, as if it had been written here. */
function forged(content: unknown): string {
  const text = Buffer.from(JSON.stringify(content)).toString('base64url');
  const sum = createHash('sha256').update(text).digest('base64url');
  return `nestjs-replicant-snapshot:1:${sum}:${text}`;
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
    ['an object with a prototype', { __proto__: [], length: 3 }],
    ['too short', ['0/1', false]],
    ['too long', ['0/1', false, null, [], 1]],
    ['another position that is none', ['0/1', false, 'x', []]],
    ['no position', [1, false, null, []]],
    ['a position out of range', ['1/123456789', false, null, []]],
    ['a position written otherwise', ['0/00000001', false, null, []]],
    ['a flag that is none', ['0/1', 'false', null, []]],
    ['tables that are no list', ['0/1', false, null, { length: 0 }]],
    ['a table that is a text', ['0/1', false, null, ['public.t']]],
    ['a table without a schema', ['0/1', false, null, [[null, 't', 'd']]]],
    ['an empty name', ['0/1', false, null, [['public', '', 'd']]]],
    [
      'a name that is too long',
      ['0/1', false, null, [['p', 't'.repeat(64), 'd']]],
    ],
    ['a name with a NUL', ['0/1', false, null, [['p', 't\0', 'd']]]],
    ['a state that is none', ['0/1', false, null, [['p', 't', 'constructor']]]],
    ['a state with more', ['0/1', false, null, [['p', 't', 'd', 7, null]]]],
    [
      'one table twice',
      [
        '0/1',
        false,
        [
          ['p', 't', 'd', 7],
          ['p', 't', 'w', 7],
        ],
      ],
    ],
    [
      'nothing left to read',
      ['0/1', false, null, [['p', 't', 'r', 7, null, null]]],
    ],
    [
      'a bound with too few values',
      [
        '0/1',
        false,
        [
          [
            'p',
            't',
            'r',
            [
              [
                ['a', 'o'],
                ['b', 'o'],
              ],
              ['1'],
            ],
            null,
          ],
        ],
      ],
    ],
    [
      'a bound with a column of one text',
      ['0/1', false, null, [['p', 't', 'r', 7, [[['a']], ['1']], null]]],
    ],
    [
      'a bound with a column of three texts',
      [
        '0/1',
        false,
        null,
        [['p', 't', 'r', 7, [[['a', 'o', 'o']], ['1']], null]],
      ],
    ],
    [
      'a bound with a number',
      ['0/1', false, null, [['p', 't', 'r', 7, [[['a', 'o']], [1]], null]]],
    ],
    [
      'a bound with NULL',
      ['0/1', false, null, [['p', 't', 'r', 7, [[['a', 'o']], [null]], null]]],
    ],
    [
      'a bound without columns',
      ['0/1', false, null, [['p', 't', 'r', 7, [[], []], null]]],
    ],
    [
      'a bound with a column twice',
      [
        '0/1',
        false,
        [
          [
            'p',
            't',
            'r',
            [
              ['a', 'a'],
              ['1', '1'],
            ],
            null,
          ],
        ],
      ],
    ],
    [
      'a value with a NUL',
      ['0/1', false, null, [['p', 't', 'r', 7, [[['a', 'o']], ['\0']], null]]],
    ],
    [
      'lacking rows without one',
      [
        '0/1',
        false,
        null,
        [['p', 't', 'r', 7, [[['a', 'o']], ['1']], [['a'], []]]],
      ],
    ],
    [
      'lacking rows with too few values',
      ['0/1', false, null, [['p', 't', 'r', 7, null, [['a', 'b'], [['1']]]]]],
    ],
  ])('is refused when its content is %s', (_what, content) => {
    expect(refusal(forged(content)).halt.code).toBe(
      'snapshot_progress_invalid',
    );
  });

  it('is read when it was forged to be what is written', () => {
    expect(
      decodeProgress(forged(['0/1', true, null, [['p', 't', 'd', 7]]])),
    ).toEqual({
      floor: 1n,
      complete: true,
      uncertain: null,
      tables: [{ schema: 'p', table: 't', oid: 7, state: 'done' }],
    });
  });

  it('shows nothing of its content when it is refused', () => {
    const token = encodeProgress(SOME);
    const secret = [
      token.slice(0, -1),
      forged([
        '0/1',
        false,
        [['p', 't', 'r', 7, [[['a', 'o']], ['SECRET-7', '']]]],
      ]),
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
