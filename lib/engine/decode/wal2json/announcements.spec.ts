import { describe, expect, it } from 'vitest';
import {
  columnsOf,
  deleteDocument,
  insertDocument,
  updateDocument,
} from '../../../../test/support/wal2json-documents.js';
import {
  catalogTable,
  Wal2jsonDecoding,
} from '../../../../test/support/wal2json-decoding.js';

const ID = columnsOf('id');
const NUMBER = { name: 'n', typeOid: 23 };

describe('a table is announced', () => {
  it('as the catalog has it, before its first row, as the object that its rows carry', () => {
    const decoding = new Wal2jsonDecoding([
      catalogTable(['id', { name: 'v', typeOid: 1043, typeModifier: 14 }]),
    ]);
    const row = insertDocument({
      columns: [
        ...ID,
        { name: 'v', type: 'character varying(10)', typeOid: 1043 },
      ],
    });
    const insert = decoding.decode(row);
    expect(decoding.announced).toStrictEqual([
      {
        oid: 20_000,
        schema: 'public',
        table: 't',
        name: 'public.t',
        replicaIdentity: 'default',
        columns: [
          {
            name: 'id',
            typeOid: 25,
            type: 'text',
            typeModifier: -1,
            key: true,
          },
          {
            name: 'v',
            typeOid: 1043,
            type: 'varchar',
            typeModifier: 14,
            key: false,
          },
        ],
      },
    ]);
    expect(insert.kind === 'insert' && insert.relation).toBe(
      decoding.announced[0],
    );
    const again = decoding.decode(row);
    expect(again.kind === 'insert' && again.relation).toBe(
      decoding.announced[0],
    );
  });

  it('once its types are known', () => {
    const decoding = new Wal2jsonDecoding([
      catalogTable(['id', { name: 'm', typeOid: 20_010 }]),
    ]);
    decoding.types.announce(20_011, 'public', '_mood');
    decoding.decode(
      insertDocument({
        columns: [
          ...ID,
          { name: 'm', type: 'mood', typeOid: 20_010, value: 'sad' },
          { name: 'ms', type: 'mood[]', typeOid: 20_011, value: '{sad}' },
        ],
      }),
    );
    expect(decoding.asked).toEqual(['public.t', '20010', '20011']);
    expect(decoding.announced).toMatchObject([
      { columns: [{}, { type: '20010' }, { type: '_mood' }] },
    ]);
  });

  it('with a type OID above 2^31, which the plugin writes as a negative number', () => {
    const decoding = new Wal2jsonDecoding([catalogTable(['id'])]);
    decoding.decode(
      insertDocument({ columns: [...ID, { name: 'v', typeOid: -2 }] }),
    );
    expect(decoding.announced).toMatchObject([
      { columns: [{}, { typeOid: 2 ** 32 - 2 }] },
    ]);
  });
});

describe('a column that was added', () => {
  it('comes behind the others in the first row that has it', () => {
    const decoding = new Wal2jsonDecoding([catalogTable(['id', 'a', 'b'])]);
    decoding.decode(insertDocument({ columns: columnsOf('id', 'a', 'b') }));
    decoding.decode(
      updateDocument({ columns: columnsOf('id', 'c', 'd'), identity: ID }),
    );
    expect(decoding.shapes).toEqual(['id* a b', 'id* a b c d']);
    expect(decoding.asked).toEqual(['public.t']);
  });

  it('stands where an insert has it, when it is met there', () => {
    const decoding = new Wal2jsonDecoding([catalogTable(['id', 'a', 'b'])]);
    decoding.decode(insertDocument({ columns: columnsOf('id', 'c', 'b') }));
    expect(decoding.shapes).toEqual(['id* c b']);
  });

  it('has the modifier that the text of its type shows, or else the catalog', () => {
    const decoding = new Wal2jsonDecoding(
      [catalogTable(['id'])],
      [
        catalogTable([
          'id',
          { name: 'v', typeOid: 1043, typeModifier: 99 },
          { name: 'g', typeOid: 20_010, typeModifier: 1_107_460 },
          { name: 'h', typeOid: 20_010, typeModifier: 7 },
        ]),
      ],
    );
    decoding.decode(
      insertDocument({
        columns: [
          ...ID,
          { name: 'v', type: 'character varying(10)', typeOid: 1043 },
          { name: 'g', type: 'geometry(Point,4326)', typeOid: 20_010 },
          { name: 'h', type: 'vector(3)', typeOid: 20_020 },
        ],
      }),
    );
    expect(
      decoding.announced[0]?.columns.map(({ typeModifier }) => typeModifier),
    ).toEqual([-1, 14, 1_107_460, 3]);
  });

  it('belongs to the key as the catalog says', () => {
    const catalog = catalogTable(['id', { name: 'k', key: true }, 'v']);
    const decoding = new Wal2jsonDecoding([catalogTable(['id'])], [catalog]);
    decoding.decode(insertDocument({ columns: columnsOf('id', 'k', 'v') }));
    expect(decoding.shapes).toEqual(['id* k* v']);
  });

  it('does not belong to the key because the catalog has another identity', () => {
    const catalog = catalogTable(['id', 'v'], { replicaIdentity: 'full' });
    const decoding = new Wal2jsonDecoding([catalogTable(['id'])], [catalog]);
    decoding.decode(insertDocument({ columns: columnsOf('id', 'v') }));
    expect(decoding.shapes).toEqual(['id* v']);
  });

  it('belongs to the full identity', () => {
    const decoding = new Wal2jsonDecoding([
      catalogTable(['id'], { replicaIdentity: 'full' }),
    ]);
    decoding.decode(insertDocument({ columns: columnsOf('id', 'v'), key: [] }));
    expect(decoding.shapes).toEqual(['id* v*']);
  });

  it('is passed over when it is generated', () => {
    const decoding = new Wal2jsonDecoding(
      [catalogTable(['id', 'v'])],
      [catalogTable(['id', 'v'], { generated: ['g'] })],
    );
    const row = insertDocument({ columns: columnsOf('id', 'v', 'g') });
    decoding.decode(insertDocument({ columns: columnsOf('id', 'v') }));
    expect(decoding.decode(row)).toMatchObject({ record: { id: 'x', v: 'x' } });
    expect(decoding.decode(row)).toMatchObject({ record: { id: 'x', v: 'x' } });
    expect(decoding.shapes).toEqual(['id* v']);
    expect(decoding.asked).toEqual(['public.t']);
  });

  it('is there though the catalog has lost it or the table since, and is asked for once', () => {
    for (const catalog of [[], [catalogTable(['id'])]]) {
      const decoding = new Wal2jsonDecoding([catalogTable(['id'])], catalog);
      decoding.decode(insertDocument({ columns: columnsOf('id', 'v') }));
      decoding.decode(insertDocument({ columns: columnsOf('id') }));
      decoding.decode(insertDocument({ columns: columnsOf('id', 'v') }));
      expect(decoding.shapes).toEqual(['id* v', 'id*', 'id* v']);
      expect(decoding.asked).toEqual(['public.t']);
    }
  });
});

describe('a column that was dropped', () => {
  const table = catalogTable(['id', NUMBER, 'v']);

  function afterFirst(...documents: Buffer[]): string[] {
    const decoding = new Wal2jsonDecoding([table]);
    decoding.decode(insertDocument({ columns: columnsOf('id', 'n', 'v') }));
    for (const bytes of documents) decoding.decode(bytes);
    return decoding.shapes.slice(1);
  }

  it('is missing from an insert', () => {
    expect(
      afterFirst(insertDocument({ columns: columnsOf('id', 'n') })),
    ).toEqual(['id* n']);
  });

  it('is missing from an update when its type has a fixed width', () => {
    const [toasted, dropped] = [columnsOf('id', 'n'), columnsOf('id', 'v')];
    expect(
      afterFirst(
        updateDocument({ columns: toasted, identity: ID }),
        updateDocument({ columns: dropped, identity: ID }),
      ),
    ).toEqual(['id* v']);
  });

  it('shows in no delete under a key, and in no NULL', () => {
    const nulls = columnsOf('n', 'v').map((column) => ({
      ...column,
      value: null,
    }));
    expect(
      afterFirst(
        deleteDocument({ identity: ID }),
        insertDocument({ columns: [...ID, ...nulls] }),
        updateDocument({ columns: [...ID, ...nulls], identity: ID }),
      ),
    ).toEqual([]);
  });

  it('is missing from the old row under the full identity', () => {
    for (const row of [
      updateDocument({
        columns: columnsOf('id'),
        identity: columnsOf('id', 'n'),
      }),
      deleteDocument({ identity: columnsOf('id', 'n'), key: [] }),
    ]) {
      const decoding = new Wal2jsonDecoding([
        catalogTable(['id', NUMBER, 'v'], { replicaIdentity: 'full' }),
      ]);
      expect(decoding.decode(row)).toMatchObject({
        old: { kind: 'full', record: { id: 'x', n: 1 } },
      });
      expect(decoding.shapes).toEqual(['id* n*']);
    }
  });

  it('is announced with what was added in its place', () => {
    expect(
      afterFirst(insertDocument({ columns: columnsOf('id', 'n', 'w') })),
    ).toEqual(['id* n w']);
    expect(
      afterFirst(
        updateDocument({ columns: columnsOf('id', 'v', 'w'), identity: ID }),
      ),
    ).toEqual(['id* v w']);
  });
});

describe('a type that was changed', () => {
  it.each([
    ['type', { type: 'integer', typeOid: 23 }, 23, -1],
    ['length', { type: 'character varying(20)', typeOid: 1043 }, 1043, 24],
  ])('is announced: the %s', (_, change, typeOid, typeModifier) => {
    const first = { name: 'v', type: 'character varying(10)', typeOid: 1043 };
    const decoding = new Wal2jsonDecoding([
      catalogTable(['id', { name: 'v', typeOid: 1043, typeModifier: 14 }]),
    ]);
    for (const v of [first, { ...first, ...change }]) {
      decoding.decode(updateDocument({ columns: [...ID, v], identity: ID }));
    }
    expect(decoding.announced).toMatchObject([
      { columns: [{}, { typeOid: 1043, typeModifier: 14 }] },
      { columns: [{}, { typeOid, typeModifier }] },
    ]);
  });

  it('is none when the type of an extension has another text', () => {
    const decoding = new Wal2jsonDecoding([
      catalogTable(['id', { name: 'g', typeOid: 20_010, typeModifier: 5 }]),
    ]);
    for (const type of ['geometry(Point)', 'other.geometry(Point)']) {
      decoding.decode(
        insertDocument({
          columns: [...ID, { name: 'g', type, typeOid: 20_010 }],
        }),
      );
    }
    expect(decoding.announced).toMatchObject([
      { columns: [{}, { typeModifier: 5 }] },
    ]);
  });
});
