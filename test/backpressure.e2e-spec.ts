import { describe, expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import {
  currentLsn,
  readSlot,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

/** As the field reports have it: a server with little patience. */
const suite = useServer({ settings: { wal_sender_timeout: '3s' } });

const SCHEMA =
  'create table t(id int primary key, pad text); create publication p for table t';
const PATIENCE_MS = 3_000;

/** Ids from 1, each with so many bytes, in transactions of one row. */
async function insertAlone(
  source: TestDatabase,
  count: number,
  bytes: number,
): Promise<void> {
  await source.query(
    `do $$ begin for i in 1..${count} loop
       insert into t values (i, repeat('x', ${bytes})); commit; end loop; end $$`,
  );
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** How far the server has sent, and what it was told. */
async function sender(): Promise<{ sent: bigint; told: number }> {
  const [row] = await suite.server.query<{ sent: string; told: number }>(
    `select (sent_lsn - '0/0')::text as sent,
            extract(epoch from clock_timestamp() - reply_time)::float8 as told
       from pg_stat_replication`,
  );
  return { sent: BigInt(row?.sent ?? 0), told: row?.told ?? Infinity };
}

describe('a slow sink', () => {
  it('keeps its connection however long it takes, and gets everything once (C01)', async () => {
    const { source, target } = await sourceAndTarget(suite, SCHEMA);
    const { pipeline, applied, calls } = capture(source, {
      target,
      apply: () => (calls.length === 2 ? pause(PATIENCE_MS * 1.5) : pause(10)),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const pid = await walsenderPid(suite.server, pipeline.options.slotName);
    await insertAlone(source, 5, 10);
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2, 3, 4, 5]);
    expect(inserted(applied, 'id')).toEqual([1, 2, 3, 4, 5]);
    expect(await walsenderPid(suite.server, pipeline.options.slotName)).toBe(
      pid,
    );
  });

  it('stops reading at maxInflightBytes, keeps its connection while the socket is full, and gets all after release (C02)', async () => {
    const { source, target } = await sourceAndTarget(suite, SCHEMA);
    const maxInflightBytes = 256 * 1024;
    const count = 1_500;
    const rowBytes = 20_000;
    const release = deferred();
    const { pipeline, applied, calls } = capture(source, {
      target,
      maxInflightBytes,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const pid = await walsenderPid(suite.server, pipeline.options.slotName);
    const states: string[] = [];
    pipeline.on('state', ({ to }) => states.push(to));
    // 30 MB: more than all buffers between the processes hold, so the server has to wait for the reader.
    await insertAlone(source, count, rowBytes);
    const end = await currentLsn(source);
    await waitFor(() => pipeline.status().inflightBytes >= maxInflightBytes, {
      message: 'backpressure',
    });
    await pause(PATIENCE_MS * 1.3);
    const { sent, told } = await sender();
    expect(sent).toBeLessThan(end);
    expect(told).toBeLessThan(PATIENCE_MS / 1_000 / 2);
    // One chunk of the socket (64 kB) may arrive above the limit, and a message that it completes.
    expect(pipeline.status().inflightBytes).toBeLessThan(
      maxInflightBytes + 65_536 + rowBytes,
    );
    expect(calls).toHaveLength(1);
    expect(await walsenderPid(suite.server, pipeline.options.slotName)).toBe(
      pid,
    );
    expect(pipeline.status().state).toBe('streaming');

    release.resolve();
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual(upTo(count));
    expect(calls).toHaveLength(count);
    expect(pipeline.status().inflightBytes).toBe(0);
    expect(await walsenderPid(suite.server, pipeline.options.slotName)).toBe(
      pid,
    );
    expect(states).toEqual([]);
  }, 60_000);

  it('keeps a transaction that still arrives within the limit too', async () => {
    const { source, target } = await sourceAndTarget(suite, SCHEMA);
    const maxInflightBytes = 1_000_000;
    const rowBytes = 20_000;
    const release = deferred();
    const { pipeline, applied } = capture(source, {
      target,
      maxInflightBytes,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    let most = 0;
    // Two of them are more than the limit, one is not.
    for (const first of [1, 31, 61, 91]) {
      await source.query(
        `insert into t select g, repeat('x', ${rowBytes})
           from generate_series($1::int, $1::int + 29) g`,
        [first],
      );
    }
    await waitFor(() => {
      most = Math.max(most, pipeline.status().inflightBytes);
      return most >= maxInflightBytes;
    });
    await pause(200);
    most = Math.max(most, pipeline.status().inflightBytes);
    // One chunk of the socket (64 kB) may arrive above the limit, and a message that it completes.
    expect(most).toBeLessThan(maxInflightBytes + 65_536 + rowBytes);
    release.resolve();
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual(upTo(120));
  });

  it('hears of a lost connection although it does not read, and gets everything once after release (D03)', async () => {
    const { source, target } = await sourceAndTarget(suite, SCHEMA);
    const maxInflightBytes = 64 * 1024;
    const count = 40;
    const release = deferred();
    const { pipeline, applied, calls } = capture(source, {
      target,
      maxInflightBytes,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    // More than is read, and less than fills the buffers: a server that cannot write cannot end either.
    await insertAlone(source, count, 20_000);
    await waitFor(() => pipeline.status().inflightBytes >= maxInflightBytes);
    await terminateBackend(
      suite.server,
      await walsenderPid(suite.server, pipeline.options.slotName),
    );
    await waitFor(() => pipeline.state === 'reconnecting', {
      timeout: PATIENCE_MS,
    });
    // The delivery of the lost connection is still running, so nothing is read again yet.
    expect(calls).toHaveLength(1);
    expect(
      (await readSlot(suite.server, pipeline.options.slotName))?.active,
    ).toBe(false);
    release.resolve();
    await waitFor(() => pipeline.state === 'streaming');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual(upTo(count));
    // What was durable when the connection was lost does not come again.
    expect(calls).toHaveLength(count);
  }, 60_000);
});
