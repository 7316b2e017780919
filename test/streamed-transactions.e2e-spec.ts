import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Transaction } from '../lib/engine/model/transaction.js';
import type { PipelineOptions } from '../lib/engine/options/pipeline-options.js';
import type { Client } from 'pg';
import { capture, type Capture } from './support/capture.js';
import { changesOf } from './support/changes-of.js';
import { haltedFor } from './support/halted.js';
import { currentLsn, readSlot } from './support/logical-slot.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

// The server streams what has reached this while it runs.
const suite = useServer({
  settings: { logical_decoding_work_mem: '64kB', wal_sender_timeout: '4s' },
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
  /** The next call of the handler rejects, in the middle of the transaction. */
  readonly failNext: () => void;
}

async function streaming(
  options: Partial<PipelineOptions> = {},
): Promise<Streaming> {
  const { source, target } = await sourceAndTarget(suite, SCHEMA);
  const read: Read[] = [];
  let fails = false;
  const captured = capture(source, {
    target,
    streaming: {},
    messages: true,
    ...options,
    sink: { message: { takes: () => false, handle: async () => {} } },
    apply: async (transaction) => {
      const whole = await readWhole(transaction, fails ? 100 : Infinity);
      if (fails) {
        fails = false;
        throw new Error('as told');
      }
      read.push(whole);
    },
  });
  captured.pipeline.start();
  await captured.pipeline.whenStreaming();
  return {
    ...captured,
    source,
    read,
    failNext: () => {
      fails = true;
    },
    caughtUp: async () => captured.pipeline.caughtUp(await currentLsn(source)),
  };
}

async function readWhole(
  transaction: Transaction,
  most: number,
): Promise<Read> {
  const ids: number[] = [];
  const ordinals: number[] = [];
  for await (const change of transaction.changes) {
    if (ordinals.length >= most) break;
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

/** Files below the folder. */
async function filesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name.endsWith('.spill'));
}

/** A folder for files, which goes with the test. */
async function spillFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'spill-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
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
       ${insert(1401, 2100)}; commit`,
    );
    await source.query(
      `begin; ${insert(3001, 3700)}; alter table t add x text default 'new'; ${insert(3701, 4400)}; commit`,
    );
    await source.query(insert(5000, 5000));
    await caughtUp();
    expect(read.map(({ ids }) => ids)).toEqual([
      [...range(1, 700), ...range(1401, 2100)],
      range(3001, 4400),
      [5000],
    ]);
    expect(
      calls.map((transaction) => [
        ...new Set(
          changesOf(transaction).map(({ columns }) =>
            columns.map(({ name }) => name).join(),
          ),
        ),
      ]),
    ).toEqual([['id,v'], ['id,v', 'id,v,x'], ['id,v,x']]);
  });

  it('that the server cannot decode while it runs is read when it has committed', async () => {
    const { source, pipeline, read, caughtUp } = await streaming();
    const warnings: string[] = [];
    pipeline.on('warning', ({ message }) => warnings.push(message));
    // PostgreSQL 15 to 18 stumble over the second change of the table.
    await source.query(
      `begin; ${insert(1, 700)}; savepoint a; alter table t add w int default 7; ${insert(701, 1400)}; rollback to a;
       ${insert(1401, 2100)}; alter table t add x text default 'new'; ${insert(2101, 2800)}; commit`,
    );
    await caughtUp();
    expect(warnings).toContainEqual(
      expect.stringContaining('as without the option streaming'),
    );
    expect(read.map(({ ids }) => ids)).toEqual([
      [...range(1, 700), ...range(1401, 2800)],
    ]);
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
    const end = await currentLsn(source);
    await waitFor(
      async () => {
        const slot = await readSlot(source, pipeline.options.slotName);
        return (slot?.confirmedFlushLsn ?? 0n) >= end;
      },
      { timeout: 20_000 },
    );
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

describe('a transaction that does not fit into memory', () => {
  const maxInflightBytes = 128 * 1024;
  const maxSpillBytes = 100_000_000;

  it.each([false, true])(
    'goes to disk until it commits, encrypted: %s, and leaves no file',
    async (encrypt) => {
      const dir = await spillFolder();
      const { source, pipeline, read, caughtUp } = await streaming({
        maxInflightBytes,
        streaming: { spill: { dir, encrypt, maxSpillBytes } },
      });
      const client = await begun(source, 10_000);
      await client.query(`savepoint a; ${insert(10_001, 15_000)}`);
      await waitFor(
        () => (pipeline.status().streamed?.bytesOnDisk ?? 0) > 2_000_000,
      );
      expect(await filesIn(dir)).toHaveLength(1);
      expect(pipeline.status().streamed?.bytes).toBeLessThan(
        2 * maxInflightBytes,
      );
      await client.query(`rollback to a; ${insert(15_001, 20_000)}; commit`);
      await caughtUp();
      expect(read.map(({ ids }) => ids)).toEqual([
        [...range(1, 10_000), ...range(15_001, 20_000)],
      ]);
      expect(pipeline.status().streamed).toEqual({
        transactions: 0,
        bytes: 0,
        bytesOnDisk: 0,
      });
      await waitFor(async () => (await filesIn(dir)).length === 0);
    },
  );

  it('leaves no file when its delivery fails, and comes once after the next start', async () => {
    const dir = await spillFolder();
    const options = {
      maxInflightBytes,
      streaming: { spill: { dir, maxSpillBytes } },
    };
    const { source, pipeline, read, failNext, caughtUp } =
      await streaming(options);
    failNext();
    await source.query(insert(1, 20_000));
    await haltedFor(pipeline, 'sink_failed');
    expect(await filesIn(dir)).toEqual([]);
    pipeline.start();
    await caughtUp();
    expect(read.map(({ ids }) => ids.length)).toEqual([20_000]);
    expect(await filesIn(dir)).toEqual([]);
  });

  it('may be a single row', async () => {
    const dir = await spillFolder();
    const { source, pipeline, read, caughtUp } = await streaming({
      maxInflightBytes,
      streaming: { spill: { dir, maxSpillBytes } },
    });
    const client = await source.connect();
    await client.query(
      `begin; insert into t select 1, string_agg(md5(g::text), '') from generate_series(1, 40000) g`,
    );
    // The server sends what is flushed, and only a commit flushes at once.
    await source.query('insert into t values (2)');
    await waitFor(
      () => (pipeline.status().streamed?.bytesOnDisk ?? 0) > 1_000_000,
    );
    await client.query('commit');
    await caughtUp();
    expect(read.map(({ ids }) => ids)).toEqual([[2], [1]]);
  });

  it('is swept from disk when the process before was killed', async () => {
    const dir = await spillFolder();
    const { source, pipeline } = await streaming({
      streaming: { spill: { dir, maxSpillBytes } },
    });
    await pipeline.stop();
    const [identity] = await source.query<{ path: string }>(
      `select format('%s-%s-slot_%s', system_identifier, (select oid from pg_database where datname = current_database()), current_database()) as path
         from pg_control_system()`,
    );
    const folder = join(dir, present(identity).path);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, '17.spill'), 'left over');
    await writeFile(join(dir, '17.spill'), 'of somebody else');
    pipeline.start();
    await pipeline.whenStreaming();
    expect(await filesIn(dir)).toEqual(['17.spill']);
  });

  it('halts with spill_exhausted beyond maxSpillBytes, at once', async () => {
    const dir = await spillFolder();
    const { source, pipeline } = await streaming({
      maxInflightBytes,
      streaming: { spill: { dir, maxSpillBytes: 1_000_000 } },
    });
    const client = await begun(source, 10_000);
    await haltedFor(pipeline, 'spill_exhausted');
    expect(await filesIn(dir)).toEqual([]);
    await client.query('rollback');
  });

  it('halts with spill_io_failed when the disk fails, at once', async () => {
    const dir = await spillFolder();
    const { source, pipeline } = await streaming({
      maxInflightBytes,
      streaming: { spill: { dir, maxSpillBytes } },
    });
    // Where the folder has to be there is a file.
    await rm(dir, { recursive: true });
    await writeFile(dir, '');
    const client = await begun(source, 10_000);
    const halt = await haltedFor(pipeline, 'spill_io_failed');
    expect(halt.detail).toContain('ENOTDIR');
    expect(halt.detail).not.toContain(dir);
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
  await client.query(
    `begin; ${insert(first * 100_000 + 1, first * 100_000 + rows)}`,
  );
  return client;
}
