import { expect } from 'vitest';
import { type Lsn, parseLsn } from '../../lib/engine/model/lsn.js';
import {
  compareTables,
  countApplied,
  NO_DIFFERENCE,
} from './compare-tables.js';
import { haltedFor } from './halted.js';
import { readSlot } from './logical-slot.js';
import {
  POISON,
  poisoned,
  type Poisoned,
  type PoisonedOptions,
} from './poisoned.js';
import { present } from './present.js';
import type { SuiteServer } from './suite.js';
import type { TestDatabase } from './test-database.js';

/** Inserts rows with these texts, each in a transaction of its own; the ids go on from the last. */
export async function insert(
  source: TestDatabase,
  ...texts: readonly string[]
): Promise<void> {
  for (const text of texts)
    await source.query(
      'insert into t select coalesce(max(id), 0) + 1, $1 from t',
      [text],
    );
}

/** A mirror that has halted at a poison transaction behind another; these come behind it. */
export async function halted(
  suite: SuiteServer,
  options: PoisonedOptions = {},
  behind: readonly string[] = ['behind'],
): Promise<Poisoned & { readonly lsn: Lsn }> {
  const stage = await poisoned(suite, options);
  const { pipeline, source } = stage;
  pipeline.start();
  await pipeline.whenStreaming();
  await insert(source, 'before', POISON, ...behind);
  const halt = await haltedFor(pipeline, 'sink_failed');
  return { ...stage, lsn: present(halt.lsn) };
}

export async function confirmed({ source, slotName }: Poisoned): Promise<Lsn> {
  const slot = await readSlot(source, slotName);
  return slot?.confirmedFlushLsn ?? 0n;
}

export async function stored({ target }: Poisoned): Promise<Lsn> {
  const [row] = await target.query<{ lsn: string }>(
    'select confirmed_lsn::text as lsn from replicant_checkpoints',
  );
  return parseLsn(row?.lsn ?? '') ?? 0n;
}

/** The target has everything but the poison, each transaction once, and the handler was given the poison so often. */
export async function expectPassed(
  stage: Poisoned,
  lsn: Lsn,
  { applied = 2, calls = 1, missing = 1 } = {},
): Promise<void> {
  const { source, target, pipeline } = stage;
  await pipeline.caughtUp();
  expect(await compareTables(source, target)).toEqual({
    ...NO_DIFFERENCE,
    missing,
  });
  expect(await countApplied(target)).toEqual({ applied, appliedTwice: 0 });
  expect(stage.calls.filter((call) => call === lsn)).toHaveLength(calls);
}
