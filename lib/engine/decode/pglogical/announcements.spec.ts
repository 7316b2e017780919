import { describe, expect, it } from 'vitest';
import { catalogTable } from '../../../../test/support/catalog-decoding.js';
import { pglogicalDecoding } from '../../../../test/support/pglogical-decoding.js';
import {
  insertFrame,
  relationFrame,
} from '../../../../test/support/pglogical-frames.js';
import type { CatalogTable } from '../../model/relation.js';

const HIGH = 0xfedc_ba98; // above 2^31

describe('an announcement', () => {
  it('takes names and key from the message, types and identity from the catalog', () => {
    const table = catalogTable(HIGH, ['*Ключ:23', 'naïve col:1043'], {
      schema: 'схема',
      table: 'Größe_表😀',
      replicaIdentity: 'index',
    });
    const decoding = pglogicalDecoding([table]);
    const frame = relationFrame({
      oid: HIGH,
      schema: 'схема',
      table: 'Größe_表😀',
      columns: ['naïve col', '*Ключ'],
    });
    expect(decoding.decode(frame)).toStrictEqual({
      kind: 'relation',
      relation: {
        oid: HIGH,
        schema: 'схема',
        table: 'Größe_表😀',
        name: 'схема.Größe_表😀',
        replicaIdentity: 'index',
        columns: [
          {
            name: 'naïve col',
            typeOid: 1043,
            type: 'varchar',
            typeModifier: -1,
            key: false,
          },
          {
            name: 'Ключ',
            typeOid: 23,
            type: 'int4',
            typeModifier: -1,
            key: true,
          },
        ],
      },
    });
    expect(decoding.decoder.tables).toBe(1);
  });

  it('asks the catalog once for each announcement, also for a table that was read at the beginning', () => {
    const table = catalogTable(1, ['*id:23']);
    const decoding = pglogicalDecoding([table], [table]);
    decoding.decode(relationFrame({ oid: 1, columns: ['*id'] }));
    expect(decoding.asked).toEqual(['public.t']);
    decoding.catalog = [catalogTable(1, ['*id:20'])];
    const again = decoding.decode(relationFrame({ oid: 1, columns: ['*id'] }));
    expect(decoding.asked).toEqual(['public.t', 'public.t']);
    expect(again).toMatchObject({
      relation: { columns: [{ name: 'id', type: 'int8' }] },
    });
  });

  it('does not take the answer about another table', () => {
    const { decoder } = pglogicalDecoding([]);
    const frame = relationFrame({ oid: 1, columns: ['id'] });
    const needed = decoder.decode(frame);
    if (needed.kind !== 'table-needed') throw new Error(needed.kind);
    needed.learn(null);
    expect(
      decoder.decode(relationFrame({ oid: 2, table: 'u', columns: ['id'] })),
    ).toMatchObject({ kind: 'table-needed', name: { table: 'u' } });
  });

  it('asks for types that nobody named before it announces their columns', () => {
    const decoding = pglogicalDecoding(
      [catalogTable(1, ['m:20000', 'i:23', 'ms:20001'])],
      [],
      [
        { oid: '20001', kind: 'array', inner: '20000', delimiter: ',' },
        { oid: '20000', kind: 'other', inner: '0', delimiter: ',' },
      ],
    );
    decoding.decode(relationFrame({ oid: 1, columns: ['m', 'i', 'ms'] }));
    expect(decoding.asked).toEqual(['public.t', '20000', '20001']);
    expect(
      decoding.decode(insertFrame(1, ['sad', '1', '{a,b}'])),
    ).toMatchObject({ record: { m: 'sad', i: 1, ms: ['a', 'b'] } });
  });

  it('asks what an array type is made of that has a name already', () => {
    const decoding = pglogicalDecoding([catalogTable(1, ['ms:20001'])]);
    decoding.types.announce(20_001, 'public', '_mood');
    decoding.decode(relationFrame({ oid: 1, columns: ['ms'] }));
    expect(decoding.asked).toEqual(['public.t', '20001']);
  });

  it('announces columns of the message alone, in its order, though the catalog is newer', () => {
    const decoding = announcing(
      [catalogTable(1, ['b:23', 'added:23', '*a:23'])],
      ['*a', 'b'],
    );
    expect(decoding).toMatchObject({
      columns: [
        { name: 'a', type: 'int4', key: true },
        { name: 'b', type: 'int4', key: false },
      ],
    });
  });

  it('takes a column that the catalog has no more as text of unknown type', () => {
    expect(
      announcing([catalogTable(1, ['*a:23'])], ['*a', 'gone']),
    ).toMatchObject({
      columns: [
        { name: 'a' },
        { name: 'gone', typeOid: 705, type: 'unknown', typeModifier: -1 },
      ],
    });
  });

  it('keeps the type of a column that the catalog has no more when it was announced before', () => {
    const decoding = pglogicalDecoding([catalogTable(1, ['*a:23', 'gone:20'])]);
    const frame = relationFrame({ oid: 1, columns: ['*a', 'gone'] });
    const first = decoding.decode(frame);
    for (const catalog of [[catalogTable(1, ['*a:23'])], []]) {
      decoding.catalog = catalog;
      expect(decoding.decode(frame)).toEqual(first);
    }
  });

  it('knows a table that was renamed since by its OID', () => {
    const connected = catalogTable(1, ['*a:23']);
    const namesake = catalogTable(2, ['*a:1700']);
    expect(announcing([namesake], ['*a'], [connected])).toMatchObject({
      oid: 1,
      columns: [{ name: 'a', type: 'int4' }],
    });
  });

  it('leaves out what the catalog omits, and reads the rest of the row', () => {
    const decoding = pglogicalDecoding([
      catalogTable(1, ['*a:23', 'c:23'], { generated: ['twice'] }),
    ]);
    const announced = decoding.decode(
      relationFrame({ oid: 1, columns: ['*a', 'twice', 'c'] }),
    );
    if (announced.kind !== 'relation') throw new Error(announced.kind);
    expect(announced.relation.columns.map(({ name }) => name)).toEqual([
      'a',
      'c',
    ]);
    expect(decoding.decode(insertFrame(1, ['1', '2', '3']))).toStrictEqual({
      kind: 'insert',
      relation: announced.relation,
      record: { a: 1, c: 3 },
    });
  });

  it.each([
    ['full', ['*a', 'b'], 'default', [true, false]],
    ['nothing', ['*a', 'b'], 'default', [true, false]],
    ['index', ['*a', 'b'], 'index', [true, false]],
    ['full', ['a', 'b'], 'full', [true, true]],
    ['nothing', ['a', 'b'], 'nothing', [false, false]],
    ['default', ['a', 'b'], 'default', [false, false]],
  ] as const)(
    'believes the key of the message before the identity of the catalog: %s, %j',
    (replicaIdentity, columns, identity, keys) => {
      const relation = announcing(
        [catalogTable(1, ['a', 'b'], { replicaIdentity })],
        columns,
      );
      expect(relation).toMatchObject({
        replicaIdentity: identity,
        columns: keys.map((key) => ({ key })),
      });
    },
  );

  it('keeps the identity that was announced when that of the catalog came later', () => {
    const decoding = pglogicalDecoding([
      catalogTable(1, ['a'], { replicaIdentity: 'full' }),
    ]);
    const frame = relationFrame({ oid: 1, columns: ['a'] });
    decoding.decode(frame);
    decoding.catalog = [catalogTable(1, ['*a'])];
    expect(decoding.decode(frame)).toMatchObject({
      relation: { replicaIdentity: 'full', columns: [{ key: true }] },
    });
  });

  it.each([
    ['column flags', 'C\x02N\0\x02a\0', 'unknown column flags'],
    ['a part of a column', 'C\0T\0\x02a\0', 'unknown part of the description'],
    ['a part of a table', 'D\0N\0\x02a\0', 'unknown part of the description'],
  ])('refuses %s that it does not know', (_, column, detail) => {
    const described = relationFrame({ oid: 1, columns: ['a'] });
    const frame = Buffer.concat([
      described.subarray(0, -column.length),
      Buffer.from(column),
    ]);
    expect(pglogicalDecoding([]).decode(frame)).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: `relation: ${detail}`,
    });
  });

  it('refuses two columns of one name', () => {
    expect(
      pglogicalDecoding([]).decode(
        relationFrame({ oid: 1, columns: ['a', 'a'] }),
      ),
    ).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: 'relation: two columns of one name',
    });
  });
});

/** What the decoder announces of the table 1. */
function announcing(
  catalog: readonly CatalogTable[],
  columns: readonly string[],
  connected: readonly CatalogTable[] = [],
): unknown {
  const decoding = pglogicalDecoding(catalog, connected);
  const announced = decoding.decode(relationFrame({ oid: 1, columns }));
  if (announced.kind !== 'relation') throw new Error(announced.kind);
  return announced.relation;
}
