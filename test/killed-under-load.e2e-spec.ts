import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { countApplied } from './support/compare-tables.js';
import { Mirrored, NO_FAULTS } from './support/mirrored.js';
import { MIXED_TABLES, MixedWriter } from './support/mixed-writer.js';
import { useServer } from './support/suite.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });
const KILLS = 20;

describe('an application that is killed at random moments under load', () => {
  it('loses nothing and applies nothing twice', async () => {
    const mirrored = await Mirrored.create(suite, MIXED_TABLES);
    await (await mirrored.started()).kill();
    const writer = await MixedWriter.start(mirrored.source);
    const applied: number[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const application = mirrored.start();
      // One in four is killed before it streams, the others at work.
      if (kill % 4 !== 0) await application.says('committed');
      await sleep(Math.random() * 300);
      await application.kill();
      applied.push((await countApplied(mirrored.target)).applied);
    }
    await writer.stop();
    // It got on between the kills, so that they met it at work.
    expect(new Set(applied).size).toBeGreaterThan(KILLS / 2);

    const last = await mirrored.started();
    await mirrored.caughtUp(60_000);
    expect(await mirrored.faults()).toEqual(NO_FAULTS);
    expect(last.said).not.toContain('halted');
  }, 300_000);
});
