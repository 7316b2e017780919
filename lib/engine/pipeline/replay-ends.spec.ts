import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  feed,
  feedFrames,
  keepaliveFrame,
} from '../../../test/support/fed-intake.js';
import {
  insertFrame,
  messageFrame,
  relationFrame,
  streamAbortFrame,
  streamedFrame,
  streamStartFrame,
  streamStopFrame,
} from '../../../test/support/pgoutput-frames.js';
import {
  all,
  CATALOG,
  commit,
  MOODS,
  OneFile,
  part,
  plain,
  StreamedIntake,
  TABLE,
} from '../../../test/support/streamed/streamed-intake.js';
import { waitFor } from '../../../test/support/wait-for.js';
import { deferred } from '../model/deferred.js';
import { PlainReadingFault } from '../model/plain-reading-fault.js';
import { SpillError } from '../streamed/spill-error.js';

describe('the end of a connection while a transaction is run through', () => {
  const sent = [
    ...part(1, [TABLE, insertFrame(1, ['a']), ...MOODS]),
    commit(1, 10n),
    ...plain(20n, [TABLE, insertFrame(1, ['b'])]),
  ];

  it('while types are asked for, delivers nothing of it and nothing after it', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, sent);
    feedFrames(connection.intake, [keepaliveFrame(100n, true)]);
    await connection.toldLast('types');
    connection.intake.close();
    feedFrames(connection.intake, [keepaliveFrame(100n, true)]);
    connection.catalog.resolve(CATALOG);
    await waitFor(() => connection.told.includes('replayed'));
    expect(connection.told.slice(2)).toEqual([
      'keepalive',
      'replayed',
      'keepalive',
    ]);
    expect(connection.positions.received).toBe(0n);
    expect(connection.failed).toEqual([]);
  });

  it('when the catalog cannot be asked any more, is told once', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, sent);
    await connection.toldLast('types');
    connection.intake.close();
    connection.catalog.reject(new Error('the connection was lost'));
    await nextTurn();
    expect(connection.failed).toEqual([]);
    expect(connection.pushed).toEqual([]);
  });

  it('while there is no room, delivers nothing of it', async () => {
    const connection = new StreamedIntake();
    connection.room = deferred();
    feed(connection.intake, sent);
    await nextTurn();
    connection.intake.close();
    connection.room.resolve();
    await connection.toldLast('replayed');
    expect(connection.pushed).toEqual([]);
    expect(connection.failed).toEqual([]);
  });

  it('behind its last row, is not taken for its commit', async () => {
    const last = deferred<void>();
    const file = new OneFile(async function* (written) {
      yield* written;
      await last.promise;
    });
    const connection = new StreamedIntake(file);
    feed(connection.intake, [
      ...part(1, [TABLE, insertFrame(1, ['a'])]),
      commit(1, 10n),
    ]);
    await waitFor(() => connection.intake.openBytes > 0);
    connection.intake.close();
    last.resolve();
    await connection.toldLast('replayed');
    expect(connection.pushed).toEqual([]);
    expect(connection.failed).toEqual([]);
  });

  it('asked for behind the transaction that arrives, takes in the rest of that and nothing else', async () => {
    const connection = new StreamedIntake(null, { maxTransactionBytes: 2 });
    connection.room = deferred();
    feed(connection.intake, [
      ...part(1, [TABLE, insertFrame(1, ['a']), insertFrame(1, ['b'])]),
      commit(1, 10n),
      ...plain(20n, [TABLE, insertFrame(1, ['c'])]),
    ]);
    await nextTurn();
    connection.intake.closeAfterTransaction();
    const { room } = connection;
    connection.room = null;
    room.resolve();
    await connection.toldLast('replayed');
    expect(connection.told).toEqual([
      'replaying',
      'arriving',
      'arrived',
      'replayed',
    ]);
  });
});

describe('a transaction that cannot be run through', () => {
  const rows = [
    ...part(1, [TABLE, insertFrame(1, ['secret'])]),
    commit(1, 10n),
  ];

  it('halts when its file cannot be read', async () => {
    const connection = new StreamedIntake(
      new OneFile(async function* (written) {
        yield* written.slice(0, 0);
        throw new SpillError('EIO', 'reading a spill file failed: EIO');
      }),
    );
    feed(connection.intake, rows);
    await waitFor(() => connection.failed.length > 0);
    expect(connection.failed).toMatchObject([
      {
        halt: {
          code: 'spill_io_failed',
          detail: 'reading a spill file failed: EIO',
        },
      },
    ]);
  });

  it('halts when what is in its file are no frames', async () => {
    const connection = new StreamedIntake(
      new OneFile(([block = Buffer.of()]) => all([block.subarray(0, -1)])),
    );
    feed(connection.intake, rows);
    await waitFor(() => connection.failed.length > 0);
    expect(connection.failed).toMatchObject([
      { halt: { code: 'spill_io_failed' } },
    ]);
  });

  it('halts at a frame that is malformed, and delivers nothing of it', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, [
      ...part(1, [
        TABLE,
        insertFrame(1, ['a']).subarray(0, -1),
        insertFrame(1, ['b']),
      ]),
      commit(1, 10n),
    ]);
    await waitFor(() => connection.failed.length > 0);
    await nextTurn();
    expect(connection.failed).toMatchObject([
      { halt: { code: 'decode_failure', detail: 'insert: ends early' } },
    ]);
    expect(connection.pushed).toEqual([]);
  });

  it('halts once when it commits before what was delivered', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, [
      ...part(1, []),
      ...plain(20n, [TABLE, insertFrame(1, ['a'])]),
      commit(1, 10n),
    ]);
    await connection.toldLast('replayed');
    expect(connection.failed).toMatchObject([
      { halt: { code: 'protocol_violation' } },
    ]);
  });

  it('is read again, and nothing behind it, when it is unclear which messages were rolled back', () => {
    const connection = new StreamedIntake();
    const content = Buffer.of(1);
    feed(connection.intake, [
      ...plain(5n, [TABLE, insertFrame(1, ['a'])]),
      ...part(1, [messageFrame({ flags: 1, lsn: 1n, prefix: 'p', content })]),
      streamAbortFrame(1, 2),
      commit(1, 10n),
      ...plain(20n, [insertFrame(1, ['b'])]),
    ]);
    expect(connection.values).toEqual([['a'], 'end']);
    expect(connection.pushed[1]).toEqual({
      kind: 'end',
      fault: new PlainReadingFault(10n),
    });
  });

  const withSavepoints = [
    ...part(1, [TABLE, insertFrame(1, ['a'])]),
    streamStartFrame(1, false),
    ...[2, 3, 2, 4].map((subxid) =>
      streamedFrame(subxid, insertFrame(1, ['b'])),
    ),
    streamStopFrame(),
    streamAbortFrame(1, 3),
    commit(1, 10n),
    ...plain(20n, [TABLE, insertFrame(1, ['c'])]),
  ];

  it('is read again, and nothing behind it, when more was rolled back than the server has said', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, withSavepoints);
    expect(connection.asked).toEqual([[2, 4]]);
    connection.answer.resolve(true);
    await connection.toldLast('end');
    expect(connection.pushed).toEqual([
      { kind: 'end', fault: new PlainReadingFault(10n) },
    ]);
  });

  it('is delivered when no more was, and is not asked about without savepoints', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, withSavepoints);
    connection.answer.resolve(false);
    await connection.toldLast('transaction');
    expect(connection.values).toEqual([['a', 'b', 'b', 'b'], ['c']]);
    feed(connection.intake, [...rows]);
    expect(connection.asked).toHaveLength(1);
  });

  it('is not begun when the connection ends while that is asked', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, withSavepoints);
    connection.intake.close();
    connection.answer.resolve(false);
    await connection.toldLast('replayed');
    expect(connection.pushed).toEqual([]);
    expect(connection.positions.received).toBe(0n);
    expect(connection.failed).toEqual([]);
  });

  it('ends the connection at a destructive change of a table in it', async () => {
    const connection = new StreamedIntake();
    feed(connection.intake, [
      ...plain(5n, [
        relationFrame({ oid: 1, columns: [{ name: 'v' }, { name: 'w' }] }),
        insertFrame(1, ['a', 'b']),
      ]),
      ...rows,
      ...plain(20n, [TABLE, insertFrame(1, ['b'])]),
    ]);
    await connection.toldLast('replayed');
    expect(connection.pushed).toMatchObject([
      { kind: 'transaction' },
      { kind: 'end', fault: { commitLsn: 10n } },
    ]);
  });
});
