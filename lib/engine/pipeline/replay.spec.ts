import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  dataFrame,
  feed,
  feedFrames,
  keepaliveFrame,
} from '../../../test/support/fed-intake.js';
import {
  insertFrame,
  messageFrame,
  relationFrame,
  streamAbortFrame,
} from '../../../test/support/pgoutput-frames.js';
import {
  CATALOG,
  commit,
  MOODS,
  part,
  plain,
  StreamedIntake,
  TABLE,
} from '../../../test/support/streamed/streamed-intake.js';
import { waitFor } from '../../../test/support/wait-for.js';
import { deferred } from '../model/deferred.js';

describe('a transaction that was kept while it ran', () => {
  it('is delivered as if it were sent whole now', async () => {
    const frames = [
      TABLE,
      insertFrame(1, ['one']),
      messageFrame({
        flags: 1,
        lsn: 7n,
        prefix: 'p',
        content: Buffer.from('content'),
      }),
      insertFrame(1, ['two']),
    ];
    const [streamed, whole] = [new StreamedIntake(), new StreamedIntake()];
    feed(streamed.intake, [
      ...part(900, frames.slice(0, 2)),
      ...part(900, frames.slice(2), false),
      commit(900, 10n),
    ]);
    feed(whole.intake, plain(10n, frames));
    await streamed.toldLast('replayed');
    expect(streamed.pushed).toEqual(whole.pushed);
    expect(whole.values).toEqual([['one', 'two']]);
    expect(streamed.positions).toEqual(whole.positions);
  });

  it('comes before everything that was sent after its commit', async () => {
    const connection = new StreamedIntake();
    feedFrames(connection.intake, [
      ...[
        ...part(1, [TABLE, insertFrame(1, ['a'])]),
        ...part(2, [TABLE, insertFrame(1, ['b'])]),
        commit(2, 10n),
        ...plain(20n, [TABLE, insertFrame(1, ['c'])]),
        commit(1, 30n),
      ].map(dataFrame),
      keepaliveFrame(100n, true),
      ...plain(40n, [insertFrame(1, ['d'])]).map(dataFrame),
    ]);
    expect(connection.told).toEqual(['replaying']);
    await waitFor(() => connection.pushed.length === 4);
    expect(connection.values).toEqual([['b'], ['c'], ['a'], ['d']]);
    expect(connection.told).toEqual([
      'replaying',
      'transaction',
      'replayed',
      'transaction',
      'replaying',
      'transaction',
      'replayed',
      'keepalive',
      'transaction',
    ]);
  });

  it('waits for types that have to be learned, and so does what follows it', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, [
      ...part(1, [
        TABLE,
        insertFrame(1, ['a']),
        ...MOODS,
        insertFrame(2, ['{sad,"very sad"}']),
      ]),
      commit(1, 10n),
      ...plain(20n, [TABLE, ...MOODS, insertFrame(2, ['{}'])]),
    ]);
    await connection.toldLast('types');
    feed(connection.intake, plain(30n, [insertFrame(2, ['{x}'])]));
    expect(connection.pushed).toEqual([]);
    connection.catalog.resolve(CATALOG);
    await waitFor(() => connection.pushed.length === 3);
    expect(connection.values).toEqual([
      ['a', ['sad', 'very sad']],
      [[]],
      [['x']],
    ]);
    expect(connection.told.filter((what) => what === 'types')).toHaveLength(1);
  });

  it('goes on only as long as there is room', async () => {
    const connection = new StreamedIntake(null, { maxTransactionBytes: 100 });
    const row = insertFrame(1, ['x'.repeat(50)]);
    connection.room = deferred();
    feed(connection.intake, [
      ...part(1, [TABLE, row, row, row]),
      commit(1, 10n),
    ]);
    const seen: number[] = [];
    for (let frames = 0; frames < 4; frames++) {
      await nextTurn();
      seen.push(connection.intake.openBytes);
      expect(connection.told).not.toContain('replayed');
      const { room } = connection;
      connection.room = deferred();
      room.resolve();
    }
    // The second row is more than is held: what has come is handed over.
    expect(seen).toEqual([0, row.length, 0, 0]);
    await connection.toldLast('replayed');
    expect(connection.told).toContain('arrived');
  });

  it('lets others have their turn, however large it is', async () => {
    const connection = new StreamedIntake(null, { maxTransactionBytes: 1e9 });
    const rows = Array.from({ length: 2_000 }, () => insertFrame(1, ['x']));
    feed(connection.intake, part(1, [TABLE]));
    for (let n = 0; n < 50; n++) feed(connection.intake, part(1, rows, false));
    feed(connection.intake, [commit(1, 10n)]);
    expect(await connection.turnsUntilReplayed()).toBeGreaterThan(3);
    expect(connection.pushed).toMatchObject([{ changes: 100_000 }]);
  });

  it('lets others have their turn, however much of it was rolled back', async () => {
    const connection = new StreamedIntake();
    const rows = part(
      1,
      Array.from({ length: 2_000 }, () => insertFrame(1, ['x'])),
      false,
      2,
    );
    feed(connection.intake, part(1, [TABLE]));
    for (let n = 0; n < 500; n++) feed(connection.intake, rows);
    feed(connection.intake, [streamAbortFrame(1, 2), commit(1, 10n)]);
    expect(await connection.turnsUntilReplayed()).toBeGreaterThan(1);
    expect(connection.pushed).toEqual([
      { kind: 'pass', end: 15n, empty: true },
    ]);
  });

  it('is no transaction when nothing came of it', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, [...part(1, []), commit(1, 10n)]);
    await connection.toldLast('replayed');
    expect(connection.pushed).toEqual([
      { kind: 'pass', end: 15n, empty: true },
    ]);
  });
});

describe('the shape of a table', () => {
  const older = relationFrame({
    oid: 1,
    columns: [{ name: 'v' }, { name: 'w' }],
  });
  const newer = relationFrame({
    oid: 1,
    columns: [{ name: 'w' }, { name: 'v' }],
  });

  it('that was announced later counts behind a transaction that had an older one, also as news', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, [
      ...part(1, [older, insertFrame(1, ['v1', 'w1'])]),
      ...plain(10n, [newer, insertFrame(1, ['w2', 'v2'])]),
      commit(1, 20n),
      ...plain(30n, [insertFrame(1, ['w3', 'v3'])]),
      ...plain(40n, [insertFrame(1, ['w4', 'v4'])]),
    ]);
    await waitFor(() => connection.pushed.length === 4);
    expect(connection.values).toEqual([['v2'], ['v1'], ['v3'], ['v4']]);
    expect(
      connection.pushed.map((work) =>
        work.kind === 'transaction'
          ? work.shapes.map(({ columns }) => columns[0]?.name)
          : work.kind,
      ),
    ).toEqual([['w'], ['v'], ['w'], []]);
  });

  it('that was announced in the transaction counts for all behind it', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, [
      ...plain(10n, [older, insertFrame(1, ['v1', 'w1'])]),
      ...part(1, [newer, insertFrame(1, ['w2', 'v2'])]),
      commit(1, 20n),
      ...plain(30n, [insertFrame(1, ['w3', 'v3'])]),
    ]);
    await waitFor(() => connection.pushed.length === 3);
    expect(connection.values).toEqual([['v1'], ['v2'], ['v3']]);
  });
});
