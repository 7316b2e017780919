import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PipelineOptions } from '../lib/engine/options/pipeline-options.js';
import { haltedFor } from './support/halted.js';
import { present } from './support/present.js';
import {
  begun,
  filesIn,
  insert,
  range,
  spillFolder,
  type Streaming,
  STREAMING_SERVER,
  streamingOn,
} from './support/streaming.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({
  settings: { ...STREAMING_SERVER, wal_sender_timeout: '4s' },
});

function streaming(options?: Partial<PipelineOptions>): Promise<Streaming> {
  return streamingOn(suite, options);
}

describe('a transaction that does not fit into memory', () => {
  const maxInflightBytes = 128 * 1024;
  const maxSpillBytes = 100_000_000;

  it.each([false, true])(
    'goes to disk until it commits, encrypted: %s, and leaves no file (E01, 13.6 no. 44)',
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

  it('leaves no file when its delivery fails, and comes once after the next start (13.6 no. 45)', async () => {
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

  it('brings its messages from there, also when it has nothing else (13.6 no. 48)', async () => {
    const dir = await spillFolder();
    const { source, pipeline, read, caughtUp } = await streaming({
      maxInflightBytes: 2 * maxInflightBytes,
      streaming: { spill: { dir, maxSpillBytes } },
    });
    const spilled = new Set<number>();
    pipeline.on('spilled', ({ xid }) => spilled.add(xid));
    const tell = (text: string): string =>
      `select pg_logical_emit_message(true, 'p', ${text})`;
    await source.query(
      `begin; ${tell("'first'")}; ${insert(1, 4000)}; savepoint a; ${insert(4001, 6000)}; rollback to a; ${tell("'last'")}; commit`,
    );
    await source.query(
      `begin; ${tell("repeat('y', 50000) || g")} from generate_series(1, 4) g; commit`,
    );
    await caughtUp();
    expect(read.map(({ ids, messages }) => [ids.length, messages])).toEqual([
      [4000, ['first', 'last']],
      [0, range(1, 4).map((n) => 'y'.repeat(50_000) + String(n))],
    ]);
    expect([...spilled]).toEqual(read.map(({ xid }) => xid));
  });

  it('may be a single row (13.6 no. 49)', async () => {
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

  it('lies in a folder of its slot and database, for nobody else to read', async () => {
    const dir = await spillFolder();
    const { source, pipeline } = await streaming({
      maxInflightBytes,
      streaming: { spill: { dir, maxSpillBytes } },
    });
    const client = await begun(source, 10_000);
    await waitFor(() => (pipeline.status().streamed?.bytesOnDisk ?? 0) > 0);
    const { rows } = await client.query<{ xid: string }>(
      'select pg_current_xact_id()::xid::text as xid',
    );
    const folder = await slotFolder(source);
    const file = `${present(rows[0]).xid}.spill`;
    await waitFor(async () => (await filesIn(dir)).length > 0);
    expect(await readdir(dir)).toEqual([folder]);
    expect(await readdir(join(dir, folder))).toEqual([file]);
    const modeOf = async (path: string): Promise<number> =>
      (await stat(join(dir, folder, path))).mode & 0o777;
    expect(await modeOf('')).toBe(0o700);
    expect(await modeOf(file)).toBe(0o600);
    await client.query('rollback');
    await pipeline.stop();
    expect(await readdir(dir)).toEqual([]);
  });

  it('is swept from disk when the process before was killed', async () => {
    const dir = await spillFolder();
    const { source, pipeline } = await streaming({
      streaming: { spill: { dir, maxSpillBytes } },
    });
    await pipeline.stop();
    const folder = join(dir, await slotFolder(source));
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, '17.spill'), 'left over');
    await writeFile(join(dir, '17.spill'), 'of somebody else');
    pipeline.start();
    await pipeline.whenStreaming();
    expect(await filesIn(dir)).toEqual(['17.spill']);
  });

  it('halts with spill_io_failed when the disk fails, at once (13.6 no. 47)', async () => {
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

/** What the folder of the slot has to be called. */
async function slotFolder(source: TestDatabase): Promise<string> {
  const [row] = await source.query<{ name: string }>(
    `select format('%s-%s-slot_%s', system_identifier, (select oid from pg_database where datname = current_database()), current_database()) as name
       from pg_control_system()`,
  );
  return present(row).name;
}
