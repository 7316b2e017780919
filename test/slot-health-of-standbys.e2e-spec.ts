import { describe, expect, it } from 'vitest';
import { readSlotSample } from '../lib/engine/server/slot-health.js';
import { withSqlSession } from '../lib/engine/server/session.js';
import { present } from './support/present.js';
import { flushedLsn, writeNoise } from './support/source-and-target.js';
import { PrimaryAndStandby } from './support/standby.js';
import type { TestDatabase } from './support/test-database.js';

/** What a server says of a slot that is not there: the end of its WAL alone. */
async function walEnd(database: TestDatabase): Promise<bigint> {
  const sample = await withSqlSession(
    {
      connection: { ...database.connection },
      applicationName: 'test',
      signal: new AbortController().signal,
    },
    (session) => readSlotSample(session, 'absent'),
  );
  expect(sample?.slot).toBeNull();
  return present(sample).walEnd;
}

describe('the end of the WAL', () => {
  it('is what a standby has replayed, and what it writes once it is promoted (J06)', async () => {
    const pair = await PrimaryAndStandby.start();
    const written = await writeNoise(pair.source);
    await pair.caughtUp();
    const replayed = await walEnd(pair.copy);
    expect(replayed).toBeGreaterThanOrEqual(written);
    await pair.promote();
    await writeNoise(pair.copy);
    const after = await walEnd(pair.copy);
    expect(after).toBeGreaterThan(replayed);
    expect(after).toBeGreaterThanOrEqual(await flushedLsn(pair.copy));
  }, 120_000);
});
