import { describe, expect, it, onTestFinished } from 'vitest';
import { ChangesError } from '../lib/index.js';
import type { Change } from '../lib/engine/model/change.js';
import { parseLsn } from '../lib/engine/model/lsn.js';
import type { Transaction } from '../lib/engine/model/transaction.js';
import type { Pipeline } from '../lib/engine/pipeline.js';
import type { CheckpointQuery } from '../lib/engine/checkpoint/checkpoint-query.js';
import { CheckpointTable } from '../lib/engine/checkpoint/checkpoint-table.js';
import { capture, type Capture } from './support/capture.js';
import { changesOf } from './support/changes-of.js';
import { range } from './support/copy.js';
import { haltedFor } from './support/halted.js';
import {
  confirmedUpTo,
  readSlot,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '3s' } });

const PATIENCE_MS = 3_000;
const LIMIT = 256 * 1024;
const ROW_BYTES = 20_000;
/** 30 MB: more than all buffers between the processes hold, so it is still arriving while its first rows are read. */
const ROWS = 1_500;
/** One chunk of the socket may arrive above the limit, and a message that it completes. */
const MOST = LIMIT + 65_536 + ROW_BYTES + 1_024;
const SCHEMA =
  'create table t(id int primary key, pad text); create publication p for table t';

/** What a handler does with the changes, and the ids that each call of it has seen. */
type Read = (transaction: Transaction, ids: number[]) => Promise<void>;

interface Reading extends Capture {
  readonly source: TestDatabase;
  readonly seen: number[][];
  readonly slotName: string;
  readonly insert: (first: number, count: number) => Promise<void>;
  /** Resets the connection, and waits until the pipeline knows. */
  readonly lose: () => Promise<void>;
}

/** A streaming pipeline whose handler reads as it is told. */
async function reading(
  read: Read,
  options: { readonly drainTimeout?: number } = {},
): Promise<Reading> {
  const { source, target } = await sourceAndTarget(suite, SCHEMA);
  const proxy = await TcpProxy.start(suite.server.connection);
  onTestFinished(() => proxy.close());
  const seen: number[][] = [];
  const captured = capture(source, {
    target,
    connection: { ...source.connection, host: proxy.host, port: proxy.port },
    maxInflightBytes: LIMIT,
    ...options,
    async apply(transaction) {
      const ids: number[] = [];
      seen.push(ids);
      await read(transaction, ids);
    },
  });
  const { pipeline } = captured;
  const { slotName } = pipeline.options;
  pipeline.start();
  await pipeline.whenStreaming();
  return {
    ...captured,
    source,
    seen,
    slotName,
    async insert(first, count) {
      await source.query(
        `insert into t select g, repeat('x', ${ROW_BYTES}) from generate_series($1::int, $2::int) g`,
        [first, first + count - 1],
      );
    },
    async lose() {
      proxy.reset();
      await waitFor(
        () =>
          pipeline.state === 'reconnecting' ||
          (pipeline.state === 'draining' && proxy.open === 0),
      );
    },
  };
}

function idOf(change: Change): number {
  if (change.op !== 'insert') throw new Error('Only rows are inserted here.');
  return Number(change.record['id']);
}

async function readAll({ changes }: Transaction, ids: number[]): Promise<void> {
  for await (const change of changes) ids.push(idOf(change));
}

/** Reads all; pauses once, after so many changes, until it is released. */
function pausingAfter(count: number): {
  readonly read: Read;
  readonly reached: Promise<void>;
  release(): void;
} {
  const [reached, released] = [deferred(), deferred()];
  return {
    reached: reached.promise,
    release: () => released.resolve(),
    async read({ changes }, ids) {
      for await (const change of changes) {
        ids.push(idOf(change));
        if (ids.length === count) {
          reached.resolve();
          await released.promise;
        }
      }
    },
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The most that the pipeline holds while something is done. */
async function mostHeld(
  pipeline: Pipeline,
  work: () => Promise<unknown>,
): Promise<number> {
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, pipeline.status().inflightBytes);
  }, 1);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return most;
}

describe('a transaction larger than the limit', () => {
  it('is read while it arrives, once, in order, between its neighbours, and holds no more than the limit (D02, E06)', async () => {
    const ends: unknown[] = [];
    const { pipeline, source, seen, calls, insert, slotName } = await reading(
      async (transaction, ids) => {
        ends.push(transaction.commitEndLsn);
        // What arrives meanwhile has to wait.
        if (transaction.commitEndLsn === null) await pause(100);
        await readAll(transaction, ids);
        ends.push(transaction.commitEndLsn);
      },
    );
    const delivered: number[] = [];
    pipeline.on('delivered', ({ changes }) => delivered.push(changes));
    const most = await mostHeld(pipeline, async () => {
      await insert(1, 3);
      await insert(11, ROWS);
      await insert(2_001, 3);
      await pipeline.caughtUp();
    });
    expect(seen).toEqual([
      range(1, 3),
      range(11, 10 + ROWS),
      range(2_001, 2_003),
    ]);
    expect(most).toBeGreaterThanOrEqual(LIMIT);
    expect(most).toBeLessThan(MOST);
    expect(calls.map(({ changes }) => Array.isArray(changes))).toEqual([
      true,
      false,
      true,
    ]);
    const large = present(calls[1]);
    expect(ends).toEqual([
      calls[0]?.commitEndLsn,
      calls[0]?.commitEndLsn,
      null,
      large.commitEndLsn,
      calls[2]?.commitEndLsn,
      calls[2]?.commitEndLsn,
    ]);
    expect(large.commitEndLsn).toBeGreaterThan(large.commitLsn);
    expect(delivered).toEqual([3, ROWS, 3]);
    expect(pipeline.status()).toMatchObject({
      changes: ROWS + 6,
      transactions: 3,
      inflightBytes: 0,
      state: 'streaming',
    });
    await confirmedUpTo(
      source,
      slotName,
      present(present(calls[2]).commitEndLsn),
    );
  });

  it('keeps its connection however slowly it is read (C01, C02, D01)', async () => {
    const { pipeline, seen, insert, slotName } = await reading(
      async ({ changes }, ids) => {
        for await (const change of changes) {
          ids.push(idOf(change));
          if (ids.length % 500 === 0) await pause(PATIENCE_MS);
        }
      },
    );
    const pid = await walsenderPid(suite.server, slotName);
    const most = await mostHeld(pipeline, async () => {
      await insert(1, ROWS);
      await pipeline.caughtUp();
    });
    expect(seen).toEqual([range(1, ROWS)]);
    expect(most).toBeLessThan(MOST);
    expect(await walsenderPid(suite.server, slotName)).toBe(pid);
  }, 60_000);

  it('leaves its changes to the sink for good (D07)', async () => {
    const { source, target } = await sourceAndTarget(suite, SCHEMA);
    const kept: Change[] = [];
    const { pipeline } = capture(source, {
      target,
      maxInflightBytes: 64 * 1024,
      async apply({ changes }) {
        for await (const change of changes) kept.push(change);
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      "insert into t select g, 'v' || g from generate_series(1, 20000) g",
    );
    await source.query("update t set pad = 'w' || id where id <= 10000");
    await source.query('delete from t where id > 10000');
    await pipeline.caughtUp();
    const rows = kept.map((change) =>
      change.op === 'insert' || change.op === 'update'
        ? [change.op, change.record['id'], change.record['pad']]
        : change.op === 'delete'
          ? [change.op, change.old.record['id']]
          : [change.op],
    );
    expect(rows).toEqual([
      ...range(1, 20_000).map((id) => ['insert', id, `v${id}`]),
      ...range(1, 10_000).map((id) => ['update', id, `w${id}`]),
      ...range(10_001, 20_000).map((id) => ['delete', id]),
    ]);
  });

  it('may meet a type on its way that the catalog has to be asked about', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      `${SCHEMA}; create type mood as enum ('ok', 'sad'); create table m(id int primary key, moods mood[]); alter publication p add table m`,
    );
    const moods: unknown[] = [];
    let count = 0;
    const { pipeline } = capture(source, {
      target,
      maxInflightBytes: LIMIT,
      async apply({ changes }) {
        for await (const change of changes) {
          count += 1;
          if (change.op === 'insert' && change.relation === 'public.m')
            moods.push(change.record['moods']);
        }
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      `with a as (insert into t select g, repeat('x', ${ROW_BYTES}) from generate_series(1, 500) g) select 1`,
    );
    await source.query(
      `do $$ begin
         insert into t select g, repeat('x', ${ROW_BYTES}) from generate_series(501, 1000) g;
         insert into m select g, '{ok,sad}' from generate_series(1, 1000) g;
         insert into t select g, repeat('x', ${ROW_BYTES}) from generate_series(1001, 1500) g;
       end $$`,
    );
    await pipeline.caughtUp();
    expect(count).toBe(2_500);
    expect(moods).toEqual(Array.from({ length: 1_000 }, () => ['ok', 'sad']));
  });
});

describe('a handler that has had enough', () => {
  it.each<[string, Read]>([
    [
      'leaves its loop',
      async ({ changes }, ids) => {
        for await (const change of changes)
          if (ids.push(idOf(change)) === 3) break;
      },
    ],
    ['reads nothing', async () => {}],
    [
      'only takes one step',
      async ({ changes }, ids) => {
        if (!(Symbol.asyncIterator in changes)) return;
        const first = await changes[Symbol.asyncIterator]().next();
        if (first.done !== true) ids.push(idOf(first.value));
      },
    ],
  ])(
    'and %s: the rest is discarded, and nothing is confirmed before its end',
    async (_, read) => {
      const durable: (string | null)[] = [];
      const { pipeline, calls, insert, slotName } = await reading(
        (transaction, ids) => {
          durable.push(subject.pipeline.status().durableLsn);
          return read(transaction, ids);
        },
      );
      const subject = { pipeline };
      const confirmed: bigint[] = [];
      let done = false;
      const sampling = (async () => {
        while (!done)
          confirmed.push(
            (await readSlot(suite.server, slotName))?.confirmedFlushLsn ?? 0n,
          );
      })();
      const most = await mostHeld(pipeline, async () => {
        await insert(1, ROWS);
        await insert(2_001, 1);
        await pipeline.caughtUp();
      });
      const [large, small] = calls;
      await confirmedUpTo(suite.server, slotName, present(small).commitLsn);
      done = true;
      await sampling;
      expect(most).toBeLessThan(MOST);
      expect(calls).toHaveLength(2);
      expect(large?.commitEndLsn).toBeNull();
      const { commitLsn } = present(large);
      // The server may tell its position, and see it confirmed, while it reads the transaction and has sent nothing of it.
      const begun = present(parseLsn(durable[0] ?? ''));
      expect(
        confirmed.filter((lsn) => lsn > begun && lsn <= commitLsn),
      ).toEqual([]);
    },
  );

  it('is not called again when the connection is lost before the end, and what it passed over is not held', async () => {
    const resolved = deferred();
    const { pipeline, calls, applied, insert, lose } = await reading(
      async () => {
        resolved.resolve();
      },
    );
    await insert(1, ROWS);
    await resolved.promise;
    await waitFor(() => applied.length === 1);
    await lose();
    const most = await mostHeld(pipeline, async () => {
      await waitFor(() => pipeline.state === 'streaming');
      await insert(2_001, 1);
      await pipeline.caughtUp();
    });
    // Not even as much as a transaction may hold before it is handed over.
    expect(most).toBeLessThan(LIMIT);
    expect(calls.map(({ changes }) => Array.isArray(changes))).toEqual([
      false,
      true,
    ]);
  });
});

describe('changes that are used in a way they do not allow', () => {
  it('fail a handler that reads them twice', async () => {
    const { pipeline, insert } = await reading(async (transaction, ids) => {
      await readAll(transaction, ids);
      await readAll(transaction, ids);
    });
    await insert(1, ROWS);
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.sinkError()).toBeInstanceOf(ChangesError);
    expect(halt.detail).toContain('ChangesError');
  });

  it('throw once the handler has settled', async () => {
    const late: unknown[] = [];
    const { pipeline, seen, insert } = await reading(
      async (transaction, ids) => {
        void readAll(transaction, ids).catch((error) => late.push(error));
      },
    );
    await insert(1, ROWS);
    await pipeline.caughtUp();
    expect(late).toEqual([expect.any(ChangesError)]);
    expect(present(seen[0]).length).toBeLessThan(ROWS);
  });
});

describe('a connection that is lost while changes are read', () => {
  it.each<[string, (error: unknown) => void]>([
    [
      'lets the error out',
      (error) => {
        throw error;
      },
    ],
    [
      'wraps the error',
      (cause) => {
        throw new Error('wrapped', { cause });
      },
    ],
    [
      'throws something else',
      () => {
        throw new RangeError('of my own');
      },
    ],
  ])(
    'brings the whole transaction again when the handler %s',
    async (_, onError) => {
      const pausing = pausingAfter(10);
      const { pipeline, seen, applied, insert, lose } = await reading(
        (transaction, ids) => pausing.read(transaction, ids).catch(onError),
      );
      await insert(1, ROWS);
      await pausing.reached;
      await lose();
      // Nothing is asked for before the handler has settled.
      expect(seen).toHaveLength(1);
      pausing.release();
      await waitFor(() => pipeline.state === 'streaming');
      await insert(2_001, 1);
      await pipeline.caughtUp();
      expect(seen).toEqual([range(1, 10), range(1, ROWS), [2_001]]);
      expect(applied).toHaveLength(2);
    },
  );

  it('halts when the handler resolves all the same, and does not reconnect', async () => {
    const pausing = pausingAfter(10);
    const { pipeline, seen, calls, insert, lose, source, slotName } =
      await reading((transaction, ids) =>
        pausing.read(transaction, ids).catch(() => {}),
      );
    const reconnects: string[] = [];
    await insert(1, ROWS);
    await pausing.reached;
    await lose();
    pipeline.on('reconnect', ({ reason }) => reconnects.push(reason));
    pausing.release();
    const halt = await haltedFor(pipeline, 'sink_failed/partial_transaction');
    expect(halt.lsn).toBe(calls[0]?.commitLsn);
    expect(seen).toEqual([range(1, 10)]);
    expect(reconnects).toEqual([]);
    expect(await readSlot(source, slotName)).toMatchObject({ active: false });
    // It was told, and the checkpoint that went with the part was set back: nothing is taken for the whole.
    pipeline.start();
    await pipeline.caughtUp();
    expect(seen).toEqual([range(1, 10), range(1, ROWS)]);
  });

  it('halts when the checkpoint was advanced outside the transaction that writes the rows', async () => {
    const { source, target } = await sourceAndTarget(suite, SCHEMA);
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const query: CheckpointQuery = (sql, values) => target.query(sql, values);
    const keeper = new CheckpointTable(query);
    const pausing = pausingAfter(10);
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, host: proxy.host, port: proxy.port },
      maxInflightBytes: LIMIT,
      checkpoint: { kind: 'keeper', keeper },
      async apply(transaction) {
        await keeper.advance(query, transaction);
        await pausing.read(transaction, []);
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      `insert into t select g, repeat('x', ${ROW_BYTES}) from generate_series(1, ${ROWS}) g`,
    );
    await pausing.reached;
    proxy.reset();
    await waitFor(() => pipeline.state === 'reconnecting');
    pausing.release();
    const halt = await haltedFor(pipeline, 'sink_failed/partial_transaction');
    expect(halt.detail).toContain('was not set back');
  });

  it('is no matter once all has arrived', async () => {
    const pausing = pausingAfter(20);
    const { source, target } = await sourceAndTarget(suite, SCHEMA);
    const ids: number[] = [];
    const { pipeline, applied } = capture(source, {
      target,
      maxInflightBytes: 10 * ROW_BYTES,
      apply: (transaction) => pausing.read(transaction, ids),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const slotName = pipeline.options.slotName;
    await source.query(
      `insert into t select g, repeat('x', ${ROW_BYTES}) from generate_series(1, 21) g`,
    );
    await pausing.reached;
    await waitFor(() => pipeline.status().inflightBytes < 5 * ROW_BYTES);
    await terminateBackend(
      suite.server,
      await walsenderPid(suite.server, slotName),
    );
    await waitFor(() => pipeline.state === 'reconnecting');
    pausing.release();
    await waitFor(() => pipeline.state === 'streaming');
    await pipeline.caughtUp();
    expect(ids).toEqual(range(1, 21));
    expect(applied).toHaveLength(1);
  });
});

describe('a handler that fails in the middle', () => {
  it('halts the pipeline, and the next start brings all of it again', async () => {
    let broken = true;
    const { pipeline, seen, insert, applied } = await reading(
      async ({ changes }, ids) => {
        for await (const change of changes) {
          ids.push(idOf(change));
          if (broken && ids.length === 700) throw new RangeError('broken');
        }
      },
    );
    await insert(1, ROWS);
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.detail).toBe('a handler of TestSink failed with RangeError');
    broken = false;
    pipeline.start();
    await pipeline.caughtUp();
    expect(seen).toEqual([range(1, 700), range(1, ROWS)]);
    expect(applied).toHaveLength(1);
  });
});

describe('a stop while changes are read', () => {
  it('lets the handler read to the end, confirms it, and begins nothing after it', async () => {
    const pausing = pausingAfter(10);
    const { pipeline, seen, calls, insert, source, slotName } = await reading(
      pausing.read,
    );
    await insert(1, ROWS);
    await insert(2_001, 1);
    await pausing.reached;
    const stopped = pipeline.stop();
    expect(pipeline.state).toBe('draining');
    pausing.release();
    await stopped;
    expect(pipeline.state).toBe('stopped');
    expect(seen).toEqual([range(1, ROWS)]);
    expect((await readSlot(source, slotName))?.confirmedFlushLsn).toBe(
      calls[0]?.commitEndLsn,
    );
    pipeline.start();
    await pipeline.caughtUp();
    expect(seen).toEqual([range(1, ROWS), [2_001]]);
  });

  it('ends it when the connection is lost meanwhile', async () => {
    const pausing = pausingAfter(10);
    const { pipeline, insert, lose, seen } = await reading(pausing.read);
    await insert(1, ROWS);
    await pausing.reached;
    const began = performance.now();
    const stopped = pipeline.stop();
    await lose();
    pausing.release();
    await stopped;
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(seen).toHaveLength(1);
    expect(present(seen[0]).length).toBeLessThan(ROWS);
    expect(pipeline.state).toBe('stopped');
  });

  it('ends the reading at drainTimeout, waits for the handler, and the next start brings all again', async () => {
    let stopping = false;
    const ended: string[] = [];
    const { pipeline, seen, insert } = await reading(
      async ({ changes }, ids) => {
        try {
          for await (const change of changes) {
            ids.push(idOf(change));
            if (stopping) await pause(20);
          }
        } catch (error) {
          await pause(100);
          ended.push(error instanceof Error ? error.name : '');
          throw error;
        }
      },
      { drainTimeout: 500 },
    );
    stopping = true;
    await insert(1, ROWS);
    await waitFor(() => (seen[0]?.length ?? 0) > 2);
    await pipeline.stop();
    expect(ended).toEqual(['ConnectionFault']);
    expect(pipeline.state).toBe('stopped');
    stopping = false;
    pipeline.start();
    await pipeline.caughtUp();
    expect(seen.slice(1)).toEqual([range(1, ROWS)]);
  });

  it.each<[string, number]>([
    ['at once', 0],
    ['long after', 2_000],
  ])(
    'halts when the handler resolves although the reading ended, %s',
    async (_, lateMs) => {
      let stopping = true;
      const { pipeline, insert, seen } = await reading(
        async ({ changes }, ids) => {
          try {
            for await (const change of changes) {
              ids.push(idOf(change));
              if (stopping) await pause(20);
            }
          } catch {
            await pause(lateMs);
          }
        },
        { drainTimeout: 300 },
      );
      await insert(1, ROWS);
      await waitFor(() => (seen[0]?.length ?? 0) > 2);
      await pipeline.stop();
      stopping = false;
      if (lateMs > 0) {
        // Nobody could know when it stopped; the next start does.
        expect(pipeline.state).toBe('stopped');
        pipeline.start();
      }
      await haltedFor(pipeline, 'sink_failed/partial_transaction');
    },
  );
});

it('the option around sees it as any other', async () => {
  const { source, target } = await sourceAndTarget(suite, SCHEMA);
  let around = 0;
  let read = 0;
  const { pipeline } = capture(source, {
    target,
    maxInflightBytes: LIMIT,
    async around(_, next) {
      around += 1;
      await next();
      expect(read).toBe(ROWS);
    },
    async apply({ changes }) {
      for await (const _ of changes) read += 1;
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query(
    `insert into t select g, repeat('x', ${ROW_BYTES}) from generate_series(1, ${ROWS}) g`,
  );
  await pipeline.caughtUp();
  expect([around, read]).toEqual([1, ROWS]);
});

it('several in a row stay within the limit together', async () => {
  const { pipeline, seen, insert } = await reading(readAll);
  const most = await mostHeld(pipeline, async () => {
    for (const first of [1, 101, 201, 301, 401]) await insert(first, 40);
    await insert(1_001, 500);
    await insert(2_001, 500);
    await pipeline.caughtUp();
  });
  expect(most).toBeLessThan(MOST);
  expect(seen.flat()).toEqual([
    ...[1, 101, 201, 301, 401].flatMap((first) => range(first, first + 39)),
    ...range(1_001, 1_500),
    ...range(2_001, 2_500),
  ]);
});

it('what fits is handed over whole', async () => {
  const { pipeline, calls, insert } = await reading(readAll);
  await insert(1, 10);
  await pipeline.caughtUp();
  expect(calls.map((each) => changesOf(each).length)).toEqual([10]);
});
