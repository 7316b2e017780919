import type { Halt } from '../../lib/engine/model/halt.js';
import { HALTS, type HaltCode } from '../../lib/engine/model/halts.js';
import type { Pipeline } from '../../lib/engine/pipeline.js';
import { expect } from 'vitest';
import type { TestDatabase } from './test-database.js';
import { waitFor } from './wait-for.js';

/** Waits until the pipeline halts for this reason, and checks that all surfaces say the same. */
export async function haltedFor(
  pipeline: Pipeline,
  code: HaltCode,
): Promise<Halt> {
  const halt = await waitFor(() => pipeline.halt, {
    timeout: 20_000,
    message: `${code}; the pipeline is ${pipeline.state}`,
  });
  const { remedy } = HALTS[code];
  expect(halt).toMatchObject({ code, remedy });
  expect(pipeline.state).toBe('halted');
  expect(pipeline.status().halt).toMatchObject({ code, remedy });
  await expect(pipeline.whenStreaming()).rejects.toThrow(code);
  return halt;
}

/** What a halt must leave as it is: the slot, and the row of the checkpoint. */
export async function slotAndCheckpoint(
  source: TestDatabase,
  target: TestDatabase,
): Promise<unknown> {
  const slots = await source.query(
    `select slot_name, plugin, slot_type, database, temporary, confirmed_flush_lsn
       from pg_replication_slots where slot_name = $1`,
    [`slot_${source.name}`],
  );
  const tables = await target.query(
    `select from pg_class where oid = to_regclass('replicant_checkpoints')`,
  );
  const checkpoints =
    tables.length === 0
      ? []
      : await target.query('select xmin, * from replicant_checkpoints');
  return { slots, checkpoints };
}
