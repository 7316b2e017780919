import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  beginFrame,
  insertFrame,
  messageFrame,
  originFrame,
  relationFrame,
  streamAbortFrame,
  streamCommitFrame,
  streamedFrame,
  streamStartFrame,
  streamStopFrame,
  truncateFrame,
  typeFrame,
} from '../../../test/support/pgoutput-frames.js';
import { Keeping } from '../../../test/support/streamed/keeping.js';
import { FrameCursor } from './frame-log.js';

const HIGH = 0xffff_fff0; // near the end of transaction ids

describe('messages of running transactions', () => {
  it('are kept with their transaction, however they are mixed, and all others are left alone', async () => {
    const subject = new Keeping();
    const plain = beginFrame(5n);
    subject.part(700, [[700, 'a']], true);
    expect(subject.take(plain)).toEqual({ kind: 'plain' });
    subject.part(701, [[701, 'b']], true);
    subject.part(700, [[702, 'c']]);
    expect(subject.take(insertFrame(1, ['x']))).toEqual({ kind: 'plain' });
    expect(subject.transactions.count).toBe(2);
    expect(await subject.textsOf(subject.commit(701))).toEqual(['b']);
    expect(await subject.textsOf(subject.commit(700))).toEqual(['a', 'c']);
    expect(subject.transactions.count).toBe(0);
  });

  it('are kept as they are sent in a plain transaction: without the transaction id, and without an origin', async () => {
    const subject = new Keeping();
    const content = Buffer.from('content');
    const frames = [
      relationFrame({ oid: 1, columns: [] }),
      typeFrame(20_000, 'public', 'mood'),
      truncateFrame([1]),
      messageFrame({ flags: 1, lsn: 1n, prefix: 'p', content }),
    ];
    subject.take(
      streamStartFrame(HIGH),
      originFrame(1n, 'elsewhere'),
      ...frames.map((frame) => streamedFrame(HIGH + 1, frame)),
      streamStopFrame(),
    );
    const kept: Buffer[] = [];
    for await (const block of subject.commit(HIGH).blocks()) {
      const frame = new FrameCursor(block);
      while (frame.next()) {
        expect(frame.subxid).toBe(HIGH + 1);
        kept.push(block.subarray(frame.start, frame.end));
      }
    }
    expect(kept).toEqual(frames);
  });

  it.each<[string, Buffer[]]>([
    ['a stop', [streamStopFrame()]],
    ['a start inside a part', [streamStartFrame(1), streamStartFrame(2)]],
    [
      'a commit inside a part',
      [streamStartFrame(1), streamCommitFrame(1, 1n, 2n)],
    ],
    ['an abort inside a part', [streamStartFrame(1), streamAbortFrame(1, 1)]],
    ['the commit of nothing', [streamCommitFrame(1, 1n, 2n)]],
    ['a part without beginning', [streamStartFrame(1, false)]],
    [
      'a second beginning',
      [streamStartFrame(1), streamStopFrame(), streamStartFrame(1)],
    ],
    [
      'a plain transaction inside a part',
      [streamStartFrame(1), beginFrame(1n)],
    ],
    ['a payload without anything', [streamStartFrame(1), Buffer.of()]],
    [
      'a row without transaction',
      [streamStartFrame(1), Buffer.from('I\0\0\0')],
    ],
  ])('are refused where they cannot be: %s', (_, payloads) => {
    const subject = new Keeping();
    expect(subject.take(...payloads)).toMatchObject({
      kind: 'fault',
      code: 'protocol_violation',
    });
  });

  it('are refused when they are malformed', () => {
    const taken = new Keeping().take(streamStartFrame(1).subarray(0, 3));
    expect(taken).toMatchObject({ kind: 'fault', code: 'decode_failure' });
  });

  it('of more transactions than are wanted end the stream', () => {
    const subject = new Keeping({ transactions: 2 });
    subject.part(1, [], true);
    subject.part(2, [], true);
    subject.take(streamAbortFrame(1, 1));
    subject.part(3, [], true);
    expect(subject.halts).toEqual([]);
    subject.take(streamStartFrame(4));
    expect(subject.halts.map(({ halt }) => halt.code)).toEqual([
      'too_many_streams',
    ]);
  });
});

describe('what is rolled back', () => {
  it.each([false, true])(
    'is left out: what was sent of it, and nothing else (on disk: %s)',
    async (onDisk) => {
      const subject = new Keeping({ bytes: onDisk ? 2 : 1e9 });
      subject.part(
        HIGH,
        [
          [HIGH, 'a'],
          [HIGH + 1, 'b'],
          [HIGH + 2, 'c'],
        ],
        true,
      );
      subject.part(HIGH, [
        [HIGH + 1, 'd'],
        [3, 'e'],
      ]);
      subject.take(streamAbortFrame(HIGH, 3), streamAbortFrame(HIGH, HIGH + 2));
      subject.part(HIGH, [
        [HIGH + 1, 'f'],
        [4, 'g'],
      ]);
      subject.part(HIGH, [[HIGH, 'h']]);
      await subject.files.finish();
      expect(subject.files.files.size).toBe(onDisk ? 1 : 0);
      const texts = await subject.textsOf(subject.commit(HIGH));
      expect(texts).toEqual(['a', 'b', 'd', 'f', 'g', 'h']);
    },
  );

  it('as a whole is gone at once, from the disk too; one that nobody knows is nothing', async () => {
    const subject = new Keeping({ bytes: 2 });
    subject.part(1, [[1, 'a']], true);
    subject.take(streamAbortFrame(7, 8), streamAbortFrame(7, 7));
    expect(subject.take(streamAbortFrame(1, 1))).toEqual({ kind: 'kept' });
    expect(subject.files.files.get(1)?.removed).toBe(true);
    await subject.files.finish();
    const { count, bytes, bytesOnDisk } = subject.transactions;
    expect([count, bytes, bytesOnDisk]).toEqual([0, 0, 0]);
    expect(subject.halts).toEqual([]);
  });

  it('takes no room for long, however much it is', async () => {
    const subject = new Keeping({ bytes: 1024 * 1024 }, false);
    subject.part(1, [[1, 'kept']], true);
    let most = 0;
    for (let n = 2; n < 100_002; n++) {
      subject.part(1, [[n, 'x'.repeat(50)]]);
      subject.take(streamAbortFrame(1, n));
      // Nothing is read meanwhile.
      while (subject.told.at(-1) === 'hold') await nextTurn();
      most = Math.max(most, subject.transactions.bytes);
    }
    expect(subject.halts).toEqual([]);
    expect(most).toBeLessThanOrEqual(1024 * 1024 + 256 * 1024);
    expect(await subject.textsOf(subject.commit(1))).toEqual(['kept']);
  });

  it('is not remembered where nothing was sent of it', () => {
    const subject = new Keeping();
    subject.part(
      1,
      [
        [1, 'a'],
        [5, 'b'],
      ],
      true,
    );
    subject.take(streamAbortFrame(1, 6), streamAbortFrame(1, 5));
    const transaction = subject.commit(1);
    expect([5, 6].map((xid) => transaction.isAborted(xid))).toEqual([
      true,
      false,
    ]);
  });

  it('has to be asked about where the server has not said it, unless that is too much', () => {
    const subject = new Keeping();
    const savepoints = (count: number): (readonly [number, string])[] =>
      Array.from({ length: count }, (_, n) => [n + 2, 'a']);
    subject.part(1, [[1, 'a'], ...savepoints(100_000), [2, 'b']], true);
    subject.take(streamAbortFrame(1, 7));
    const { subtransactions } = subject.commit(1);
    expect(subtransactions.size).toBe(99_999);
    expect([1, 2, 7].map((xid) => subtransactions.has(xid))).toEqual([
      false,
      true,
      false,
    ]);
    subject.part(1, savepoints(100_001), true);
    expect(subject.take(streamCommitFrame(1, 10n, 20n)).kind).toBe('unclear');
  });

  it.each<[string, boolean, Buffer[]]>([
    [
      'messages behind the last row',
      true,
      [message(1), streamStopFrame(), streamAbortFrame(1, 2)],
    ],
    [
      'messages before a row of a savepoint',
      true,
      [message(1), row(2), streamStopFrame(), streamAbortFrame(1, 2)],
    ],
    [
      'messages before a row of the transaction itself',
      false,
      [message(1), row(1), row(2), streamStopFrame(), streamAbortFrame(1, 2)],
    ],
    [
      'messages behind it',
      false,
      [
        row(2),
        streamStopFrame(),
        streamAbortFrame(1, 2),
        streamStartFrame(1, false),
        message(1),
        streamStopFrame(),
      ],
    ],
    [
      'messages, and nothing that is rolled back',
      false,
      [message(1), row(2), streamStopFrame()],
    ],
  ])('leaves it open whose messages were: %s (%s)', (_, unclear, payloads) => {
    const subject = new Keeping();
    subject.take(streamStartFrame(1), row(1), ...payloads);
    expect(subject.take(streamCommitFrame(1, 10n, 20n)).kind).toBe(
      unclear ? 'unclear' : 'committed',
    );
    expect(subject.transactions.count).toBe(0);
  });
});

function row(subxid: number): Buffer {
  return streamedFrame(subxid, insertFrame(1, ['x']));
}

/** The server sends messages as if they belonged to no subtransaction. */
function message(xid: number): Buffer {
  const content = Buffer.of(1);
  return streamedFrame(
    xid,
    messageFrame({ flags: 1, lsn: 1n, prefix: 'p', content }),
  );
}

describe('tables that are announced in a transaction that runs', () => {
  const announce = relationFrame({ oid: 5, columns: [] });

  function announceIn(subject: Keeping, xid: number, first = true): void {
    subject.take(
      streamStartFrame(xid, first),
      streamedFrame(xid, announce),
      streamStopFrame(),
    );
  }

  function keptBy(subject: Keeping, xid: number): number[] {
    return [...subject.transactions.settle(subject.commit(xid))];
  }

  it('count for all once it has committed, unless they were announced later elsewhere', () => {
    const subject = new Keeping();
    announceIn(subject, 1);
    announceIn(subject, 2);
    expect(keptBy(subject, 2)).toEqual([5]);
    expect(keptBy(subject, 1)).toEqual([]);
    announceIn(subject, 3);
    subject.take(announce);
    expect(keptBy(subject, 3)).toEqual([]);
    announceIn(subject, 4);
    expect(keptBy(subject, 4)).toEqual([5]);
  });

  it('do not count when a part of it was rolled back since', () => {
    const subject = new Keeping();
    announceIn(subject, 1);
    subject.take(streamAbortFrame(1, 2));
    expect(keptBy(subject, 1)).toEqual([]);
    announceIn(subject, 3);
    subject.take(streamAbortFrame(3, 4));
    announceIn(subject, 3, false);
    expect(keptBy(subject, 3)).toEqual([5]);
  });
});
