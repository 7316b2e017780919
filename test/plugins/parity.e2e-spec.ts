import { describe, expect, it } from 'vitest';
import type { TypesOption } from '../../lib/engine/options/pipeline-options.js';
import { currentLsn } from '../support/logical-slot.js';
import {
  type Taken,
  type Takings,
  takings,
  withoutMessages,
  withoutTruncateOptions,
} from '../support/parity.js';
import { createTables, STATEMENTS } from '../support/parity-fixture.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import type { TestDatabase } from '../support/test-database.js';

/** What each delivers, with what pgoutput delivers as the measure. */
const SHOWN = {
  wal2json: withoutTruncateOptions,
  pglogical: (taken: readonly Taken[]) =>
    withoutMessages(withoutTruncateOptions(taken)),
};

describe.skipIf(noPluginServer)(
  'transactions of pgoutput, wal2json and pglogical are the same',
  () => {
    const suite = usePluginServer();

    it.each(['exact', 'pg', 'text'] as const)(
      'as they are written, with types %s',
      async (types) => {
        const source = await suite.database();
        await createTables(source);
        const readers = await streaming(source, types);
        await write(source);
        await expectParity(source, readers);
      },
      60_000,
    );

    it('when the catalog has gone on since they were written', async () => {
      const source = await suite.database();
      await createTables(source);
      const before = await streaming(source, 'exact');
      for (const { pipeline } of Object.values(before)) await pipeline.stop();
      await write(source);
      await expectParity(source, await streaming(source, 'exact'));
    }, 60_000);
  },
);

async function write(source: TestDatabase): Promise<void> {
  const client = await source.connect();
  for (const statement of STATEMENTS) await client.query(statement);
}

async function streaming(
  source: TestDatabase,
  types: TypesOption,
): Promise<Takings> {
  const readers = takings(source, types);
  for (const { pipeline } of Object.values(readers)) {
    pipeline.start();
    await pipeline.whenStreaming();
  }
  return readers;
}

/** Waits until everything is delivered. */
async function expectParity(
  source: TestDatabase,
  { pgoutput, wal2json, pglogical }: Takings,
): Promise<void> {
  const end = await currentLsn(source);
  for (const { pipeline } of [pgoutput, wal2json, pglogical])
    await pipeline.caughtUp(end);
  expect(pgoutput.taken.length).toBeGreaterThan(STATEMENTS.length / 2);
  expect(wal2json.taken).toEqual(SHOWN.wal2json(pgoutput.taken));
  expect(pglogical.taken).toEqual(SHOWN.pglogical(pgoutput.taken));
}
