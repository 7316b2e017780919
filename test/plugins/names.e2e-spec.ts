import { describe, expect, it } from 'vitest';
import { capture } from '../support/capture.js';
import { changesOf } from '../support/changes-of.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { createNode } from '../support/plugin-frames.js';
import { sourceAndTarget } from '../support/source-and-target.js';
import type { TestDatabase } from '../support/test-database.js';

/** Names that the syntax of an option may take for something else, or for another name. */
const ODD = [
  'two words',
  ' blank around ',
  'a,b',
  'a.b',
  '*',
  'a*',
  '"',
  'quoted "name"',
  "it's",
  String.raw`back\slash`,
  String.raw`\*`,
  'tab\tnewline\n',
  'Upper',
  'upper',
  'select',
  'ümläut',
  '\u00a0',
  '\u0085',
  '😀',
  '(a)',
  '$1',
  '%I',
  '--',
  'n'.repeat(63),
  '😀'.repeat(15),
];

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A table of each name, in a schema of the same name and in `public`. */
async function createTables(source: TestDatabase): Promise<void> {
  for (const name of ODD) {
    const table = quoted(name);
    await source.query(
      `create schema ${table}; create table ${table}.${table}(id int primary key); create table public.${table}(id int primary key)`,
    );
  }
}

const captured = (
  transactions: readonly Parameters<typeof changesOf>[0][],
): string[] =>
  transactions
    .flatMap(changesOf)
    .map(({ schema, table }) => JSON.stringify([schema, table]));

describe.skipIf(noPluginServer)('an odd name', () => {
  const suite = usePluginServer();

  it.each(ODD)(
    'is that of a table which wal2json captures, and of no other: %j',
    async (name) => {
      const { source, target } = await sourceAndTarget(suite, 'select');
      await createTables(source);
      const { pipeline, applied } = capture(source, {
        target,
        decoder: 'wal2json',
        tables: [[name, name]],
      });
      pipeline.start();
      await pipeline.whenStreaming();
      for (const other of ODD)
        await source.query(
          `insert into ${quoted(other)}.${quoted(other)} values (1); insert into public.${quoted(other)} values (1)`,
        );
      await pipeline.caughtUp();
      expect(captured(applied)).toEqual([JSON.stringify([name, name])]);
    },
  );

  it('may stand beside all the others', async () => {
    const { source, target } = await sourceAndTarget(suite, 'select');
    await createTables(source);
    const { pipeline, applied } = capture(source, {
      target,
      decoder: 'wal2json',
      tables: ODD.map((name) => [name, name] as const),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    for (const name of ODD)
      await source.query(
        `insert into ${quoted(name)}.${quoted(name)} values (1); insert into public.${quoted(name)} values (1)`,
      );
    await pipeline.caughtUp();
    expect(captured(applied)).toEqual(
      ODD.map((name) => JSON.stringify([name, name])),
    );
  });

  it('is that of a replication set, and of no other', async () => {
    const { source, target } = await sourceAndTarget(suite, 'select');
    await createNode(source);
    // The extension keeps names of sets that are no longer than any name.
    for (const [index, name] of ODD.entries()) {
      await source.query(`create table t${index}(id int primary key)`);
      await source.query('select pglogical.create_replication_set($1)', [name]);
      await source.query(
        'select pglogical.replication_set_add_table($1, $2::text::regclass)',
        [name, `t${index}`],
      );
    }
    const fill = async (id: number): Promise<void> => {
      for (const index of ODD.keys())
        await source.query(`insert into t${index} values (${id})`);
    };
    const tablesOf = (transactions: Parameters<typeof captured>[0]): string[] =>
      transactions.flatMap(changesOf).map(({ table }) => table);
    const all = capture(source, {
      target,
      slotName: `all_${source.name}`,
      decoder: 'pglogical',
      replicationSets: ODD,
    });
    all.pipeline.start();
    await all.pipeline.whenStreaming();
    await fill(1);
    await all.pipeline.caughtUp();
    expect(tablesOf(all.applied)).toEqual(ODD.map((_, index) => `t${index}`));
    await all.pipeline.stop();

    for (const [index, name] of ODD.entries()) {
      const { pipeline, applied } = capture(source, {
        target,
        slotName: `slot_${index}_${source.name}`,
        decoder: 'pglogical',
        replicationSets: name,
      });
      pipeline.start();
      await pipeline.whenStreaming();
      await fill(index + 2);
      await pipeline.caughtUp();
      expect(tablesOf(applied)).toEqual([`t${index}`]);
      await pipeline.stop();
      await pipeline.dropSlot();
    }
  }, 60_000);
});
