import { readFile, realpath } from 'node:fs/promises';
import { platform, tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { Halt } from '../lib/engine/model/halt.js';
import type { HaltCode } from '../lib/engine/model/halts.js';
import type { SpillOptions } from '../lib/engine/options/streaming-options.js';
import { fullDisks } from './support/full-disk.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { confirmedUpTo } from './support/logical-slot.js';
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

// With this, a slot to which nothing is delivered moves every 10 s at most.
const suite = useServer({
  settings: { ...STREAMING_SERVER, wal_sender_timeout: '60s' },
});

const DISKS = await fullDisks();
const ENOUGH = 100_000_000;

/** A pipeline whose slot stands behind one row, and that begins to write to disk soon. */
async function spilling(spill: SpillOptions): Promise<Streaming> {
  const streaming = await streamingOn(suite, {
    maxInflightBytes: 128 * 1024,
    streaming: { spill },
  });
  const { source, pipeline, applied, caughtUp } = streaming;
  await source.query(insert(0, 0));
  await caughtUp();
  const end = present(present(applied[0]).commitEndLsn);
  await confirmedUpTo(source, pipeline.options.slotName, end);
  return streaming;
}

/** Runs a transaction that is too large for the disk, and commits it when the pipeline has halted for it. */
async function haltedBeforeCommit(
  { source, target, pipeline, read }: Streaming,
  code: HaltCode,
): Promise<Halt> {
  const events: string[] = [];
  pipeline.on('halt', ({ halt }) => events.push(halt.code));
  const before = await slotAndCheckpoint(source, target);
  const client = await begun(source, 10_000);
  const halt = await haltedFor(pipeline, code);
  expect(events).toEqual([code]);
  await client.query('commit');
  expect(read.map(({ ids }) => ids)).toEqual([[0]]);
  expect(await slotAndCheckpoint(source, target)).toEqual(before);
  return halt;
}

// Elsewhere is neither such a file system nor such a device.
describe.skipIf(platform() !== 'linux')('a disk that is full', () => {
  it.each(DISKS)(
    'halts at once, with the slot and the checkpoint as they are, and nothing left there; with room it comes once: $name (E07)',
    async ({ make }) => {
      const disk = await make();
      const streaming = await spilling({
        dir: disk.folder,
        maxSpillBytes: ENOUGH,
      });
      const halt = await haltedBeforeCommit(streaming, 'spill_io_failed');
      expect(halt.detail).toBe('writing a spill file failed: ENOSPC');
      expect(await filesIn(disk.folder)).toEqual([]);

      await disk.makeRoom();
      streaming.pipeline.start();
      await streaming.caughtUp();
      expect(streaming.read.map(({ ids }) => ids)).toEqual([
        [0],
        range(1, 10_000),
      ]);
      expect(await filesIn(disk.folder)).toEqual([]);
    },
  );

  it('is mounted for no longer than it is asked for', async () => {
    const mounts = await readFile('/proc/self/mounts', 'utf8');
    expect(mounts).not.toContain((await realpath(tmpdir())) + '/disk-');
  });
});

it('the ceiling of the option halts at once, with the slot and the checkpoint as they are, and nothing left on disk (E07, 13.6 no. 46, 47)', async () => {
  const dir = await spillFolder();
  const streaming = await spilling({ dir, maxSpillBytes: 1_000_000 });
  const halt = await haltedBeforeCommit(streaming, 'spill_exhausted');
  expect(halt.detail).toContain('maxSpillBytes (1000000)');
  expect(await filesIn(dir)).toEqual([]);
});
