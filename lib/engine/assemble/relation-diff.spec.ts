import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Column, Relation } from '../model/relation.js';
import { relationDifference } from './relation-diff.js';

function column(name: string, facts: Partial<Column> = {}): Column {
  return {
    name,
    typeOid: 25,
    type: 'text',
    typeModifier: -1,
    key: false,
    ...facts,
  };
}

const ID = column('id', { typeOid: 23, type: 'int4', key: true });
const A = column('a');
const B = column('b');

function table(
  columns: readonly Column[],
  replicaIdentity: Relation['replicaIdentity'] = 'default',
): Relation {
  return {
    oid: 1,
    schema: 'public',
    table: 't',
    name: 'public.t',
    replicaIdentity,
    columns,
  };
}

/** Under the full identity every column is part of it. */
function full(columns: readonly Column[]): Relation {
  return table(
    columns.map((one) => ({ ...one, key: true })),
    'full',
  );
}

describe('two shapes of a table', () => {
  it.each([
    ['are equal', table([ID, A]), table([ID, A]), null],
    ['are in another order', table([ID, A, B]), table([B, ID, A]), null],
    ['have no columns', table([]), table([]), null],
    [
      'have a type that was renamed',
      table([column('m', { typeOid: 20_000, type: 'mood' })]),
      table([column('m', { typeOid: 20_000, type: 'humour' })]),
      null,
    ],
    [
      'differ by a column more',
      table([ID]),
      table([A, ID]),
      ['column_added', 'added "a"'],
    ],
    [
      'differ by a column more under full identity',
      full([ID]),
      full([ID, A]),
      ['column_added', 'added "a"'],
    ],
    [
      'differ by a column more that is part of the key',
      table([ID]),
      table([ID, { ...A, key: true }]),
      ['replica_identity_changed', 'the key was "id" and is "id", "a"'],
    ],
    [
      'differ by a column less',
      table([ID, A, B]),
      table([ID]),
      ['column_dropped', 'dropped "a", "b"'],
    ],
    [
      'differ by a column less under full identity',
      full([ID, A]),
      full([ID]),
      ['column_dropped', 'dropped "a"'],
    ],
    [
      'differ by a name',
      table([ID, A]),
      table([ID, B]),
      ['column_dropped', 'dropped "a"'],
    ],
    [
      'differ by a type',
      table([ID, A]),
      table([ID, column('a', { typeOid: 20, type: 'int8' })]),
      ['type_changed', 'the type of "a" was text and is int8'],
    ],
    [
      'differ by types of several columns',
      table([ID, A, B]),
      table([
        ID,
        column('b', { typeOid: 20, type: 'int8' }),
        column('a', { typeOid: 20, type: 'int8' }),
      ]),
      [
        'type_changed',
        'the type of "b" was text and is int8, and the type of "a"',
      ],
    ],
    [
      'differ by a length',
      table([
        column('a', { typeOid: 1043, type: 'varchar', typeModifier: 14 }),
      ]),
      table([
        column('a', { typeOid: 1043, type: 'varchar', typeModifier: 24 }),
      ]),
      [
        'type_changed',
        'the type of "a" was varchar (modifier 14) and is varchar (modifier 24)',
      ],
    ],
    [
      'differ by a type that was created anew',
      table([column('m', { typeOid: 20_000, type: 'mood' })]),
      table([column('m', { typeOid: 20_100, type: 'mood' })]),
      ['type_changed', 'the type of "m" was mood (OID 20000) and is OID 20100'],
    ],
    [
      'differ by a key that is gone',
      table([ID, A]),
      table([{ ...ID, key: false }, A]),
      ['replica_identity_changed', 'the key was "id" and is none'],
    ],
    [
      'differ by a key of the same size',
      table([ID, A]),
      table([
        { ...ID, key: false },
        { ...A, key: true },
      ]),
      ['replica_identity_changed', 'the key was "id" and is "a"'],
    ],
    [
      'differ by the identity, whatever else',
      table([ID, A]),
      table([B], 'index'),
      ['replica_identity_changed', 'replica identity default became index'],
    ],
    [
      'differ by a dropped column, before its types and keys',
      table([ID, A, B]),
      table([
        { ...ID, key: false },
        column('a', { typeOid: 20, type: 'int8' }),
      ]),
      ['column_dropped', 'dropped "b"'],
    ],
    [
      'differ by a type, before the key',
      table([ID, A]),
      table([
        { ...ID, key: false },
        column('a', { typeOid: 20, type: 'int8' }),
      ]),
      ['type_changed', 'the type of "a" was text and is int8'],
    ],
  ] as const)('that %s', (_, before, after, expected) => {
    const difference = relationDifference(before, after);
    expect(difference).toEqual(
      expected === null
        ? null
        : {
            effect: expected[0] === 'column_added' ? 'additive' : 'destructive',
            change: expected[0],
            detail: expected[1],
          },
    );
  });

  it('are told with a few names, however many columns differ', () => {
    const columns = Array.from({ length: 1_600 }, (_, at) => column(`c${at}`));
    expect(relationDifference(table(columns), table([]))?.detail).toBe(
      'dropped "c0", "c1", "c2", "c3", "c4" and 1595 more',
    );
  });
});

const anyColumn = fc.record({
  name: fc.string({ maxLength: 3 }),
  typeOid: fc.integer({ min: 16, max: 30 }),
  type: fc.constantFrom('int4', 'text', 'mood'),
  typeModifier: fc.integer({ min: -1, max: 3 }),
  key: fc.boolean(),
});
const anyColumns = fc.uniqueArray(anyColumn, {
  selector: ({ name }) => name,
  maxLength: 8,
});
const anyIdentity = fc.constantFrom('default', 'nothing', 'index', 'full');
const anyTable = fc
  .tuple(anyColumns, anyIdentity)
  .map(([columns, identity]) =>
    identity === 'full' ? full(columns) : table(columns, identity),
  );

function shuffled(relation: Relation): fc.Arbitrary<Relation> {
  return fc
    .shuffledSubarray([...relation.columns], {
      minLength: relation.columns.length,
    })
    .map((columns) => ({ ...relation, columns }));
}

describe('whatever a table looks like', () => {
  it('another order of its columns is no change', () => {
    fc.assert(
      fc.property(
        anyTable.chain((one) => fc.tuple(fc.constant(one), shuffled(one))),
        ([before, after]) => relationDifference(before, after) === null,
      ),
    );
  });

  it('more columns outside the key, in any place, are an additive change', () => {
    fc.assert(
      fc.property(
        anyTable.chain((one) =>
          fc.tuple(
            fc.constant(one),
            shuffled({
              ...one,
              columns: [
                ...one.columns,
                column('new', { key: one.replicaIdentity === 'full' }),
              ].filter(
                ({ name }, at) => at < one.columns.length || name === 'new',
              ),
            }),
          ),
        ),
        ([before, after]) => {
          if (before.columns.some(({ name }) => name === 'new')) return;
          expect(relationDifference(before, after)).toMatchObject({
            effect: 'additive',
          });
          expect(relationDifference(after, before)).toMatchObject({
            change: 'column_dropped',
          });
        },
      ),
    );
  });

  it('a change is seen in both directions, and an additive one is destructive when it is undone', () => {
    fc.assert(
      fc.property(anyTable, anyTable, (one, other) => {
        const there = relationDifference(one, other);
        const back = relationDifference(other, one);
        expect(there === null).toBe(back === null);
        if (there?.effect === 'additive')
          expect(back?.effect).toBe('destructive');
      }),
    );
  });
});
