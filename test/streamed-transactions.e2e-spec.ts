import { describe, expect, it } from 'vitest';
import type { Transaction } from '../lib/engine/model/transaction.js';
import type { PipelineOptions } from '../lib/engine/options/pipeline-options.js';
import type { Client } from 'pg';
import { capture, type Capture } from './support/capture.js';
import { haltedFor } from './support/halted.js';
import { confirmedUpTo, readSlot } from './support/logical-slot.js';
import { flushedLsn, sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

// The server streams what has reached this while it runs.
const suite = useServer({
  settings: { logical_decoding_work_mem: '64kB' },
});

const SCHEMA = `create table t(id int primary key, v text);
  create publication p for table t`;

/** A transaction as its handler has read it. */
interface Read {
  readonly xid: number;
  readonly ids: readonly number[];
  readonly ordinals: readonly number[];
  readonly messages: readonly string[];
}

interface Streaming extends Capture {
  readonly source: TestDatabase;
  /** In the order in which handlers were called. */
  readonly read: Read[];
  /** Waits until the sink has everything that was committed. */
  readonly caughtUp: () => Promise<void>;
}

async function streaming(
  options: Partial<PipelineOptions> = {},
): Promise<Streaming> {
  const { source, target } = await sourceAndTarget(suite, SCHEMA);
  const read: Read[] = [];
  const captured = capture(source, {
    target,
    streaming: {},
    messages: true,
    ...options,
    sink: { message: { takes: () => false, take: async () => {} } },
    apply: async (transaction) => {
      read.push(await readWhole(transaction));
    },
  });
  captured.pipeline.start();
  await captured.pipeline.whenStreaming();
  return {
    ...captured,
    source,
    read,
    caughtUp: async () => {
      const end = await flushedLsn(source);
      await confirmedUpTo(source, captured.pipeline.options.slotName, end);
    },
  };
}

async function readWhole(transaction: Transaction): Promise<Read> {
  const ids: number[] = [];
  const ordinals: number[] = [];
  for await (const change of transaction.changes) {
    ordinals.push(change.ordinal);
    if (change.op === 'insert') ids.push(Number(change.record['id']));
  }
  const { xid, messages } = transaction;
  return {
    xid,
    ids,
    ordinals,
    messages: messages.map(({ content }) => content.toString('utf8')),
  };
}

function insert(first: number, last: number): string {
  return `insert into t select g, repeat('x', 200) from generate_series(${first}, ${last}) g`;
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, n) => first + n);
}

/** What the server has streamed of transactions that were running. */
async function streamedBytes(source: TestDatabase): Promise<number> {
  const [row] = await source.query<{ bytes: string }>(
    `select stream_bytes::text as bytes from pg_stat_replication_slots where slot_name = 'slot_' || current_database()`,
  );
  return Number(row?.bytes ?? 0);
}

describe('a transaction that is streamed while it runs', () => {
  it('comes once, when it has committed, without the rows of savepoints that were rolled back (E01)', async () => {
    const { source, read, caughtUp } = await streaming();
    await source.query(
      `begin; ${insert(1, 500)}; savepoint a; ${insert(501, 1000)}; savepoint b; ${insert(1001, 1500)};
       rollback to b; ${insert(1501, 2000)}; release a; ${insert(2001, 2500)}; commit`,
    );
    await caughtUp();
    expect(await streamedBytes(source)).toBeGreaterThan(0);
    expect(read.map(({ ids }) => ids)).toEqual([
      [...range(1, 1000), ...range(1501, 2500)],
    ]);
    expect(read[0]?.ordinals).toEqual(range(0, 1999));
  });

  it('leaves others the order of their commits, however their parts are mixed', async () => {
    const { source, read, caughtUp } = await streaming();
    const [one, other] = [await source.connect(), await source.connect()];
    await one.query('begin');
    await other.query('begin');
    for (let part = 0; part < 4; part++) {
      await one.query(insert(part * 1000 + 1, part * 1000 + 500));
      await other.query(insert(part * 1000 + 501, part * 1000 + 1000));
      await source.query(insert(100_000 + part, 100_000 + part));
    }
    await other.query('commit');
    await source.query(insert(100_004, 100_004));
    await one.query('commit');
    await caughtUp();
    const parts = [0, 1, 2, 3];
    expect(read.map(({ ids }) => ids)).toEqual([
      ...parts.map((part) => [100_000 + part]),
      parts.flatMap((part) => range(part * 1000 + 501, part * 1000 + 1000)),
      [100_004],
      parts.flatMap((part) => range(part * 1000 + 1, part * 1000 + 500)),
    ]);
  });

  it('that is rolled back never comes, and is held no more', async () => {
    const { source, pipeline, read, caughtUp } = await streaming();
    const client = await begun(source, 2_000);
    await waitFor(() => (pipeline.status().streamed?.transactions ?? 0) === 1);
    await client.query('rollback');
    await waitFor(() => pipeline.status().streamed?.transactions === 0);
    expect(pipeline.status().streamed).toEqual({
      transactions: 0,
      bytes: 0,
      bytesOnDisk: 0,
    });
    await source.query(insert(1, 1));
    await caughtUp();
    expect(read.map(({ ids }) => ids)).toEqual([[1]]);
  });

  it('brings its messages, but for those that were rolled back; also when it has nothing else', async () => {
    const { source, read, caughtUp } = await streaming();
    const tell = (text: string): string =>
      `select pg_logical_emit_message(true, 'p', '${text}')`;
    await source.query(
      `begin; ${tell('first')}; ${insert(1, 1000)}; savepoint a; ${tell('undone')}; ${insert(1001, 2000)}; rollback to a;
       ${tell('last')}; commit`,
    );
    await source.query(
      `begin; select pg_logical_emit_message(true, 'p', repeat('y', 50000)) from generate_series(1, 4); commit`,
    );
    await caughtUp();
    expect(read.map(({ ids, messages }) => [ids.length, messages])).toEqual([
      [1000, ['first', 'last']],
      [0, Array.from({ length: 4 }, () => 'y'.repeat(50_000))],
    ]);
  });

  it('reads its rows by the shapes that it saw, and leaves those of a savepoint that was rolled back', async () => {
    const { source, read, calls, caughtUp } = await streaming();
    await source.query(
      `begin; ${insert(1, 700)}; savepoint a; alter table t add w int default 7; ${insert(701, 1400)}; rollback to a;
       ${insert(1401, 2100)}; alter table t add x text default 'new'; ${insert(2101, 2800)}; commit`,
    );
    await source.query(insert(3000, 3000));
    await caughtUp();
    expect(read.map(({ ids }) => ids)).toEqual([
      [...range(1, 700), ...range(1401, 2800)],
      [3000],
    ]);
    expect(
      calls.map(({ changes }) =>
        Array.isArray(changes)
          ? [
              ...new Set(
                changes.map(({ columns }) =>
                  columns.map(({ name }) => name).join(),
                ),
              ),
            ]
          : null,
      ),
    ).toEqual([['id,v', 'id,v,x'], ['id,v,x']]);
  });

  it('is not streamed below the bound of the server, and is read the same', async () => {
    const { source, read, caughtUp } = await streaming();
    await source.query(insert(1, 10));
    await caughtUp();
    expect(await streamedBytes(source)).toBe(0);
    expect(read.map(({ ids }) => ids)).toEqual([range(1, 10)]);
  });

  it('comes again whole after the connection was lost while it ran', async () => {
    const { source, pipeline, read, caughtUp } = await streaming();
    const client = await begun(source, 2_000);
    await waitFor(() => pipeline.status().streamed?.transactions === 1);
    await source.query(
      `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = 'slot_' || current_database()`,
    );
    await waitFor(() => pipeline.state !== 'streaming');
    await pipeline.whenStreaming();
    await client.query(`${insert(2001, 3000)}; commit`);
    await caughtUp();
    expect(read.map(({ ids }) => ids)).toEqual([range(1, 3000)]);
  });

  it('does not keep positions from being confirmed while it runs', async () => {
    const { source, pipeline, caughtUp } = await streaming();
    const client = await begun(source, 2_000);
    await waitFor(() => pipeline.status().streamed?.transactions === 1);
    await source.query(insert(10_000, 10_000));
    await caughtUp();
    const slot = await readSlot(source, pipeline.options.slotName);
    expect(slot?.confirmedFlushLsn).toBeGreaterThan(0n);
    await client.query('rollback');
  });

  it('halts with too_many_streams beyond maxConcurrentTxns', async () => {
    const { source, pipeline } = await streaming({
      streaming: { maxConcurrentTxns: 1 },
    });
    const clients = [await begun(source, 1_000), await begun(source, 1_000, 1)];
    await haltedFor(pipeline, 'too_many_streams');
    for (const client of clients) await client.query('rollback');
  });

  it('halts with transaction_too_large beyond maxInflightBytes when nothing may go to disk', async () => {
    const { source, pipeline } = await streaming({
      maxInflightBytes: 256 * 1024,
    });
    const client = await begun(source, 4_000);
    const halt = await haltedFor(pipeline, 'transaction_too_large');
    expect(halt.remedy).toContain('streaming.spill');
    await client.query('rollback');
  });
});

/** A session that has begun a transaction, inserted so many rows and goes on. */
async function begun(
  source: TestDatabase,
  rows: number,
  first = 0,
): Promise<Client> {
  const client = await source.connect();
  await client.query(`begin; ${insert(first * 100_000 + 1, first * 100_000 + rows)}`);
  return client;
}
