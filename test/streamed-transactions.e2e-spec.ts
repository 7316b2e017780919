import { describe, expect, it } from 'vitest';
import type { PipelineOptions } from '../lib/engine/options/pipeline-options.js';
import { changesOf } from './support/changes-of.js';
import { haltedFor } from './support/halted.js';
import { currentLsn, readSlot } from './support/logical-slot.js';
import {
  begun,
  insert,
  range,
  streamedBytes,
  type Streaming,
  STREAMING_SERVER,
  streamingOn,
} from './support/streaming.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({
  settings: { ...STREAMING_SERVER, wal_sender_timeout: '4s' },
});

function streaming(options?: Partial<PipelineOptions>): Promise<Streaming> {
  return streamingOn(suite, options);
}

describe('a transaction that is streamed while it runs', () => {
  it('comes once, when it has committed, without the rows of savepoints that were rolled back (E01, 13.6 no. 41)', async () => {
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

  // A server that is not asked for streaming may still send the abort of a transaction of which nothing was sent.
  it.each<[string, PipelineOptions['streaming']]>([
    ['streamed', {}],
    ['not streamed', null],
  ])(
    'comes without them however they are named and released: %s (E01, E08)',
    async (_, option) => {
      const { source, read, caughtUp } = await streaming({ streaming: option });
      await source.query(
        `begin; ${insert(1, 500)}; savepoint s; ${insert(501, 1000)}; savepoint s; ${insert(1001, 1500)}; rollback to s;
         ${insert(1501, 2000)}; release s; savepoint r; savepoint s; ${insert(2001, 2500)}; release s; ${insert(2501, 3000)};
         rollback to r; ${insert(3001, 3500)}; rollback to s; ${insert(3501, 4000)}; commit`,
      );
      await source.query(`begin; ${insert(5001, 6000)}; rollback`);
      await caughtUp();
      expect(await streamedBytes(source)).toSatisfy(
        (bytes: number) => bytes > 0 === (option !== null),
      );
      expect(read.map(({ ids }) => ids)).toEqual([
        [...range(1, 500), ...range(3501, 4000)],
      ]);
    },
  );

  it('has every row of every part (E02, E03)', async () => {
    const { source, read, caughtUp } = await streaming();
    await source.query(
      `insert into t select g, repeat('x', 100) from generate_series(1, 50000) g`,
    );
    await caughtUp();
    expect(await streamedBytes(source)).toBeGreaterThan(50_000 * 100);
    expect(read.map(({ ids }) => ids)).toEqual([range(1, 50_000)]);
  });

  it('comes again whole when its handler has failed, and once (13.6 no. 42)', async () => {
    const { source, pipeline, applied, read, failNext, caughtUp } =
      await streaming();
    failNext();
    await source.query(insert(1, 5_000));
    await haltedFor(pipeline, 'sink_failed');
    expect(applied).toEqual([]);
    pipeline.start();
    await caughtUp();
    expect(read.map(({ ids }) => ids)).toEqual([range(1, 5_000)]);
    expect(applied).toHaveLength(1);
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

  it('brings its messages, but for those that were rolled back; also when it has nothing else (13.6 no. 48)', async () => {
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

  it('is not streamed below the bound of the server, and is read the same (13.6 no. 43)', async () => {
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

  it('halts with too_many_streams beyond maxConcurrentTxns (13.6 no. 50)', async () => {
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
