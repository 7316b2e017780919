import { inspect } from 'node:util';
import type { Client } from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type AnsweringProxy,
  answeringProxy,
} from './support/answering-proxy.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { terminateBackend, walsenderPid } from './support/logical-slot.js';
import {
  begun,
  range,
  type Streaming,
  STREAMING_SERVER,
  streamingOn,
} from './support/streaming.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({
  settings: { ...STREAMING_SERVER, wal_sender_timeout: '60s' },
});

/** What PostgreSQL says when it cannot read what it has written to disk of a transaction. */
const FAULTS = [
  [
    'XX000',
    'could not read from reorderbuffer spill file: read 0 instead of 48 bytes',
  ],
  ['58030', 'could not read from reorderbuffer spill file: Input/output error'],
  ['XX001', 'invalid page in block 7 of relation base/5/2619'],
  ['58P01', 'could not open file "pg_replslot/s/xid-7-lsn-0-1.spill"'],
] as const;

interface Failing extends Streaming {
  /** The session whose transaction is open. */
  readonly client: Client;
  readonly proxy: AnsweringProxy;
  /** Between attempts. */
  readonly delays: readonly number[];
}

/** A pipeline that holds a part of a transaction, and a server that fails whenever it streams anew. */
async function failing(
  sqlstate: string,
  text: string,
  times: number,
): Promise<Failing> {
  vi.spyOn(Math, 'random').mockReturnValue(0);
  onTestFinished(() => void vi.restoreAllMocks());
  const proxy = await answeringProxy(suite.server.connection, 'stream');
  const streaming = await streamingOn(suite, { maxCommandRetries: 2 }, proxy);
  const { source, pipeline } = streaming;
  const delays: number[] = [];
  pipeline.on('reconnect', ({ reason, delayMilliseconds }) => {
    if (reason.includes(sqlstate)) delays.push(delayMilliseconds);
  });
  const client = await begun(source, 2_000);
  await waitFor(() => pipeline.status().streamed?.transactions === 1);
  const pid = await walsenderPid(source, pipeline.options.slotName);
  await terminateBackend(source, pid);
  await waitFor(() => pipeline.state !== 'streaming');
  Object.assign(proxy, { sqlstate, text, times });
  await waitFor(() => proxy.answered > 0);
  return { ...streaming, client, proxy, delays };
}

describe.each(FAULTS)('a server that says %s, %s,', (sqlstate, text) => {
  it('is asked again, later each time, and the transaction comes once (E09)', async () => {
    const { client, proxy, delays, read, caughtUp } = await failing(
      sqlstate,
      text,
      2,
    );
    await waitFor(() => delays.length === 2);
    expect(proxy.answered).toBe(2);
    await client.query('commit');
    await caughtUp();
    expect(delays).toEqual([250, 500]);
    expect(read.map(({ ids }) => ids)).toEqual([range(1, 2_000)]);
  });

  it('for ever is given up after maxCommandRetries, with slot and checkpoint as they are (E09)', async () => {
    const { source, target, client, proxy, delays, ...rest } = await failing(
      sqlstate,
      text,
      99,
    );
    const { pipeline, read, caughtUp } = rest;
    const before = await slotAndCheckpoint(source, target);
    const halt = await haltedFor(pipeline, 'command_error/exhausted');
    expect(halt.detail).toContain(sqlstate);
    expect(halt.detail).toContain('at 3 attempts');
    expect(inspect([halt, pipeline.status()], { depth: 9 })).not.toContain(
      text,
    );
    expect(proxy.answered).toBe(3);
    expect(delays).toEqual([250, 500]);
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
    await client.query('commit');
    // It has mended itself.
    proxy.times = 0;
    pipeline.start();
    await caughtUp();
    expect(read.map(({ ids }) => ids)).toEqual([range(1, 2_000)]);
  });
});
