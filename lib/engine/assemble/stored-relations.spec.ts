import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Relation } from '../model/relation.js';
import { readRelations, writeRelations } from './stored-relations.js';

const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const relation: fc.Arbitrary<Relation> = fc
  .record({
    oid: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
    schema: name,
    table: name,
    replicaIdentity: fc.constantFrom('default', 'nothing', 'full', 'index'),
    columns: fc.array(
      fc.record({
        name,
        typeOid: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
        type: name,
        typeModifier: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
        key: fc.boolean(),
      }),
      { maxLength: 5 },
    ),
  })
  .map((one) => ({ ...one, name: `${one.schema}.${one.table}` }));
const relations = fc.uniqueArray(relation, { selector: ({ oid }) => oid });

function byOid(some: readonly Relation[]): Map<number, Relation> {
  return new Map(some.map((one) => [one.oid, one]));
}

describe('shapes that are stored', () => {
  it('are read as they were, in the order in which they were stored', () => {
    fc.assert(
      fc.property(relations, fc.nat(), (some, first) => {
        const json = writeRelations(byOid(some), first);
        expect(readRelations(json)).toEqual({
          relations: some,
          nameless: [],
          broken: [],
          whole: true,
          nextNumber: some.length === 0 ? 0 : first + some.length,
        });
      }),
    );
  });

  it('are written in ASCII, whatever the encoding of the database that keeps them', () => {
    fc.assert(
      fc.property(relations, (some) => {
        expect(writeRelations(byOid(some), 0)).toMatch(/^[ -~]*$/);
      }),
    );
  });

  it('are removed by null', () => {
    expect(writeRelations(new Map([[7, null]]), 3)).toBe('{"7":null}');
    expect(readRelations('{"7":null}')).toMatchObject({
      relations: [],
      whole: true,
    });
  });

  it('are nothing when nothing was stored', () => {
    expect(readRelations(null)).toEqual({
      relations: [],
      nameless: [],
      broken: [],
      whole: true,
      nextNumber: 0,
    });
  });

  it.each(['', '[1]', '7', 'null', '"x"', '{'])(
    'are nothing when %s was stored',
    (json) => {
      expect(readRelations(json)).toMatchObject({
        relations: [],
        whole: false,
      });
    },
  );

  it('are read as far as they can be', () => {
    const good = JSON.stringify('[4,"public","t",0,[["id",23,"int4",-1,1]]]');
    const read = readRelations(
      `{"7":${good},"8":{},"9":"[1,\\"%\\",\\"t\\",0,[]]","10":"[1,\\"s\\",\\"t\\",9,[]]","11":"[1,\\"s\\",\\"t\\",0,[[\\"id\\"]]]","12":"[\\"1\\",\\"s\\",\\"t\\",0,[]]","13":"[","x":${good},"-1":${good}}`,
    );
    expect(read).toMatchObject({
      relations: [{ oid: 7, name: 'public.t' }],
      broken: [8, 9, 10, 11, 12, 13],
      whole: false,
      nextNumber: 5,
    });
  });

  it('never fail to be read, whatever the table holds', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        readRelations(json);
        readRelations(`{"7":${json}}`);
        readRelations(JSON.stringify({ 7: json }));
        readRelations(JSON.stringify({ 8: `[0,"s","t",0,${json}]` }));
      }),
    );
  });
});
