import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BULK_TABLE } from './support/bulk-mirror.js';
import { bulkMirroring, insertRows, sumsOf } from './support/bulk-mirroring.js';
import { countApplied } from './support/compare-tables.js';
import { walsenderPid } from './support/logical-slot.js';
import { Mirrored } from './support/mirrored.js';
import { useServer } from './support/suite.js';

const suite = useServer({ settings: { wal_sender_timeout: '3s' } });

const MEBIBYTE = 1024 * 1024;
/** Less memory than what each of the tests below would take as objects. */
const SMALL = { BULK: 'on', NODE_OPTIONS: '--max-old-space-size=128' };
/** It takes some 100 MB before anything arrives. */
const MOST_MEMORY = 260 * MEBIBYTE;

// Memory and written bytes are read where Linux tells them.
describe.skipIf(platform() !== 'linux')(
  'an application with 128 MB for objects',
  () => {
    it('takes one transaction of a million rows, each once, and writes no file (E06)', async () => {
      const mirrored = await Mirrored.create(suite, BULK_TABLE);
      const application = await mirrored.started(SMALL);
      await insertRows(mirrored.source, 1, 1_000_000);
      await mirrored.caughtUp(60_000);
      const { peakBytes, fileBytes } = application.usage();
      expect(peakBytes).toBeLessThan(MOST_MEMORY);
      expect(fileBytes).toBeLessThan(MEBIBYTE);
      expect(await sumsOf(mirrored.target)).toEqual(
        await sumsOf(mirrored.source),
      );
      expect(await countApplied(mirrored.target)).toEqual({
        applied: 1,
        appliedTwice: 0,
      });
    }, 120_000);

    it('takes it from disk where the server sends it while it runs, and leaves none there (E06)', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'spill-'));
      onTestFinished(() => rm(folder, { recursive: true }));
      const mirrored = await Mirrored.create(suite, BULK_TABLE);
      const application = await mirrored.started({
        ...SMALL,
        SPILL_DIR: folder,
      });
      await insertRows(mirrored.source, 1, 1_000_000);
      await application.says('spilled');
      await mirrored.caughtUp(60_000);
      expect(application.usage().peakBytes).toBeLessThan(MOST_MEMORY);
      expect(await sumsOf(mirrored.target)).toEqual(
        await sumsOf(mirrored.source),
      );
      expect(await countApplied(mirrored.target)).toEqual({
        applied: 1,
        appliedTwice: 0,
      });
      const files = await readdir(folder, { recursive: true });
      expect(files.filter((name) => name.endsWith('.spill'))).toEqual([]);
    }, 120_000);

    it.each<[string, Record<string, string>]>([
      ['', {}],
      [', and may hold next to nothing', { MAX_INFLIGHT_BYTES: '1' }],
    ])(
      'loses nothing and keeps its connection when it is slower than the source%s (D01, D02)',
      async (_, window) => {
        const mirrored = await Mirrored.create(suite, BULK_TABLE);
        const { source, target, slotName } = mirrored;
        const application = await mirrored.started({
          ...SMALL,
          ...window,
          ROWS_MS: '20',
        });
        const pid = await walsenderPid(suite.server, slotName);
        await source.query(
          `do $$ begin for i in 0..99 loop
           insert into t select i * 1000 + g, repeat(md5(g::text), 20) from generate_series(1, 1000) g;
           commit;
         end loop; end $$`,
        );
        await insertRows(source, 200_001, 100_000, 640);
        await insertRows(source, 400_001, 1);
        await mirrored.caughtUp(60_000);
        const { peakBytes, fileBytes } = application.usage();
        expect(peakBytes).toBeLessThan(MOST_MEMORY);
        expect(fileBytes).toBeLessThan(MEBIBYTE);
        expect(await sumsOf(target)).toEqual(await sumsOf(source));
        expect(await countApplied(target)).toEqual({
          applied: 102,
          appliedTwice: 0,
        });
        expect(await walsenderPid(suite.server, slotName)).toBe(pid);
      },
      120_000,
    );
  },
);

it('a transaction that is read slowly is held far below the limit', async () => {
  const mirrored = await Mirrored.create(suite, BULK_TABLE);
  const { pipeline } = await bulkMirroring(mirrored, {
    seen: () => sleep(10),
  });
  expect(pipeline.options.maxInflightBytes).toBe(16 * MEBIBYTE);
  let most = 0;
  const sampling = setInterval(() => {
    most = Math.max(most, pipeline.status().inflightBytes);
  }, 1);
  onTestFinished(() => clearInterval(sampling));
  await insertRows(mirrored.source, 1, 50_000, 640);
  await pipeline.caughtUp();
  expect(most).toBeGreaterThan(2 * MEBIBYTE);
  expect(most).toBeLessThan(2.5 * MEBIBYTE);
  expect(await sumsOf(mirrored.target)).toEqual(await sumsOf(mirrored.source));
});
