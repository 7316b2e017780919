import { describe, expect, it } from 'vitest';
import {
  readRelations,
  writeRelations,
} from '../lib/engine/assemble/stored-relations.js';
import type { Relation } from '../lib/engine/model/relation.js';
import { capture } from './support/capture.js';
import {
  connectedTable,
  pooled,
  transaction,
} from './support/checkpoint-tables.js';
import { haltedFor } from './support/halted.js';
import { currentLsn } from './support/logical-slot.js';
import { insertEach, recording } from './support/recording.js';
import { TABLE } from './support/schema-changes.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer();

function table(oid: number, name: string): Relation {
  return {
    oid,
    schema: 'public',
    table: name,
    name: `public.${name}`,
    replicaIdentity: 'default',
    columns: [
      { name: 'id', typeOid: 23, type: 'int4', typeModifier: -1, key: true },
    ],
  };
}

function patch(...relations: Relation[]): string {
  return writeRelations(
    new Map(relations.map((relation) => [relation.oid, relation])),
    0,
  );
}

async function storedIn(target: TestDatabase): Promise<string[]> {
  const [row] = await target.query<{ relations: string | null }>(
    'select relations::text from replicant_checkpoints',
  );
  return readRelations(row?.relations ?? null).relations.map(
    ({ name }) => name,
  );
}

describe('a checkpoint table', () => {
  it('merges shapes into those it has, removes some, and leaves them alone without any', async () => {
    const database = await suite.database();
    const checkpoints = await connectedTable(database);
    const query = pooled(database);
    checkpoints.keepRelations(patch(table(1, 'a'), table(2, 'b')));
    await checkpoints.advance(query, transaction(0x10n, 0x20n));
    checkpoints.keepRelations(null);
    await checkpoints.advance(query, transaction(0x30n, 0x40n));
    expect(await storedIn(database)).toEqual(['public.a', 'public.b']);
    checkpoints.keepRelations(
      writeRelations(
        new Map([
          [1, null],
          [3, table(3, 'c')],
        ]),
        5,
      ),
    );
    await checkpoints.confirm(0x50n);
    expect(await storedIn(database)).toEqual(['public.b', 'public.c']);
    const stored = await checkpoints.load();
    expect(readRelations(stored?.relations ?? null)).toMatchObject({
      whole: true,
      nextNumber: 7,
    });
  });

  it('stores shapes at the boundary that it has, and none below it or of an older transaction', async () => {
    const database = await suite.database();
    const checkpoints = await connectedTable(database);
    await checkpoints.advance(pooled(database), transaction(0x10n, 0x20n));
    checkpoints.keepRelations(patch(table(1, 'a')));
    await checkpoints.confirm(0x1fn);
    expect(
      await checkpoints.advance(pooled(database), transaction(0x8n, 0x9n)),
    ).toBe(false);
    expect(await storedIn(database)).toEqual([]);
    await checkpoints.confirm(0x20n);
    expect(await storedIn(database)).toEqual(['public.a']);
  });

  it('takes shapes back with a transaction that was applied in part', async () => {
    const database = await suite.database();
    const checkpoints = await connectedTable(database);
    checkpoints.keepRelations(patch(table(1, 'a')));
    await checkpoints.advance(pooled(database), transaction(0x10n, null));
    checkpoints.keepRelations('{"1":null}');
    await checkpoints.retract(0x10n);
    expect(await storedIn(database)).toEqual([]);
    expect(await checkpoints.load()).toMatchObject({ commitLsn: 0xfn });
  });

  it('loses no shape when the transaction that brought it is rolled back', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      `${TABLE}; create publication p for all tables`,
    );
    let fails = true;
    const { pipeline } = capture(source, {
      target,
      apply: () =>
        fails ? Promise.reject(new Error('no')) : Promise.resolve(),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(`insert into t values (1, 'a', 'b')`);
    await haltedFor(pipeline, 'sink_failed');
    expect(await storedIn(target)).toEqual([]);
    fails = false;
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.caughtUp(await currentLsn(source));
    expect(await storedIn(target)).toEqual(['public.t']);
  });
});

describe('a pipeline', () => {
  it('stores a shape with the first transaction that has it, and sends none with the others, over starts', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      `${TABLE}; create publication p for all tables`,
    );
    const sent: unknown[] = [];
    const { pipeline, checkpoints } = capture(source, { target });
    const keep = checkpoints.keepRelations.bind(checkpoints);
    checkpoints.keepRelations = (relations) => {
      if (relations !== null) sent.push(relations);
      keep(relations);
    };
    const insert = async (id: number): Promise<void> => {
      await source.query(`insert into t values (${id}, 'a', 'b')`);
      await pipeline.caughtUp(await currentLsn(source));
    };
    pipeline.start();
    await pipeline.whenStreaming();
    for (const id of [1, 2, 3]) await insert(id);
    await pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    for (const id of [4, 5]) await insert(id);
    expect(sent).toHaveLength(1);
    await source.query('alter table t add column c int');
    await insert(6).catch(() => {});
    expect(sent).toHaveLength(2);
    expect(await storedIn(target)).toEqual(['public.t']);
  });

  it.each(['batch of the sink', 'transaction', 'batch of the library'])(
    'stores a shape with the very write that says its transaction is done: a %s',
    async (unit) => {
      const { source, target } = await sourceAndTarget(suite);
      const batch = { maxTransactions: 2, maxDelayMs: 600_000 };
      const { pipeline } = await recording(source, {
        target,
        ...(unit === 'batch of the sink'
          ? { batchDelivery: batch }
          : {
              checkpointStore: {
                connection: { ...target.connection },
                ...(unit === 'batch of the library' && { batch }),
              },
            }),
      });
      pipeline.start();
      await pipeline.whenStreaming();
      await insertEach(source, [1, 2]);
      await pipeline.caughtUp();
      const [row] = await target.query<{ applied: boolean }>(
        'select commit_lsn = (select max(commit_lsn) from recorded) as applied from replicant_checkpoints',
      );
      expect(row).toEqual({ applied: true });
      expect(await storedIn(target)).toEqual(['public.t']);
    },
  );

  it('keeps the shapes of the tables that were announced last, and no more', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      'create publication p for all tables',
    );
    const { pipeline } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      `do $$ begin for i in 1..1010 loop
         execute format('create table t%s(id int)', i);
         execute format('insert into t%s values (1)', i);
         if i % 100 = 0 then commit; end if;
       end loop; end $$`,
    );
    await pipeline.caughtUp(await currentLsn(source));
    await source.query('insert into t1010 values (2)');
    await pipeline.caughtUp(await currentLsn(source));
    await pipeline.stop();
    const stored = await storedIn(target);
    expect(stored).toHaveLength(1_000);
    expect(stored).toContain('public.t1010');
    expect(stored).not.toContain('public.t10');
  });
});
