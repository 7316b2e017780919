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

describe('another identity', () => {
  function identities(decoding: Wal2jsonDecoding): string[] {
    return decoding.announced.map(({ replicaIdentity }) => replicaIdentity);
  }

  it('is not noticed as long as the old row has the known key', () => {
    const decoding = new Wal2jsonDecoding([catalogTable(['id', 'v'])]);
    const row = columnsOf('id', 'v');
    decoding.decode(insertDocument({ columns: row }));
    expect(
      decoding.decode(updateDocument({ columns: row, identity: row })),
    ).toMatchObject({ old: null });
    expect(identities(decoding)).toEqual(['default']);
  });

  it.each([
    ['default', 'index', ['v'], ['id'], 'id v*'],
    ['index', 'default', ['id'], ['id'], 'id* v'],
    ['full', 'default', ['id'], ['id'], 'id* v'],
    ['full', 'index', ['v'], ['id'], 'id v*'],
    ['nothing', 'full', ['id', 'v'], [], 'id* v*'],
  ] as const)(
    'is announced when the old row of an update lacks what %s needs: %s',
    (before, after, identity, key, expected) => {
      const [id, v] = [
        { name: 'id', key: before === 'default' || before === 'full' },
        { name: 'v', key: before === 'index' || before === 'full' },
      ];
      const decoding = new Wal2jsonDecoding([
        catalogTable([id, v], { replicaIdentity: before }),
      ]);
      const row = columnsOf('id', 'v');
      decoding.decode(insertDocument({ columns: row, key }));
      decoding.decode(
        updateDocument({ columns: row, identity: columnsOf(...identity), key }),
      );
      expect(identities(decoding)).toEqual([before, after]);
      expect(decoding.shapes[1]).toBe(expected);
    },
  );

  it.each([
    ['full', 'default', ['id'], ['id'], { id: 'x' }],
    ['default', 'index', ['v'], ['id'], { v: 'x' }],
    ['nothing', 'full', ['id', 'v'], [], { id: 'x', v: 'x' }],
  ] as const)(
    'is announced when the old row of a delete lacks what %s needs: %s',
    (before, after, identity, key, record) => {
      const decoding = new Wal2jsonDecoding([
        catalogTable(
          [
            { name: 'id', key: before !== 'nothing' },
            { name: 'v', key: before === 'full' },
          ],
          { replicaIdentity: before },
        ),
      ]);
      expect(
        decoding.decode(
          deleteDocument({ identity: columnsOf(...identity), key }),
        ),
      ).toMatchObject({ old: { record } });
      expect(identities(decoding)).toEqual([after]);
    },
  );
});
