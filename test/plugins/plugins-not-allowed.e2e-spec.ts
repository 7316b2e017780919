import { describe, expect, it, onTestFinished } from 'vitest';
import type { DecoderOptions } from '../../lib/engine/options/decoder-options.js';
import { capture, inserted } from '../support/capture.js';
import { haltedFor, slotAndCheckpoint } from '../support/halted.js';
import { pglogicalSource } from '../support/pglogical-source.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { waitFor } from '../support/wait-for.js';

const DECODERS: [allowed: string, run: string, options: DecoderOptions][] = [
  [
    'pgoutput',
    `'pgoutput', 'wal2json'`,
    { decoder: 'wal2json', tables: [['public', 't']] },
  ],
  [
    'pgoutput, "Odd name"',
    `'pgoutput', 'Odd name', 'pglogical_output'`,
    { decoder: 'pglogical', replicationSets: 'default' },
  ],
  [
    // What is written instead of a list.
    `'pgoutput,wal2json'`,
    `'pgoutput', 'wal2json'`,
    { decoder: 'wal2json', tables: [['public', 't']] },
  ],
];

describe.skipIf(noPluginServer)('decoder/plugin_not_allowed', () => {
  const suite = usePluginServer();

  it.each(DECODERS)(
    'where output_plugin_libraries is %s, until the statement of the halt has run: %s',
    async (allowed, run, options) => {
      const { source, target } = await pglogicalSource(suite);
      const { pipeline, applied } = capture(source, { target, ...options });
      await allow(allowed);
      pipeline.start();
      const first = await haltedFor(pipeline, 'decoder/plugin_not_allowed');
      expect(first.detail).toBe(
        `run: ALTER SYSTEM SET output_plugin_libraries = ${run}`,
      );
      expect(await slotAndCheckpoint(source, target)).toEqual({
        slots: [],
        checkpoints: [],
      });
      await allow(run);
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query(`insert into t values (1, 'a')`);
      await pipeline.caughtUp();
      await pipeline.stop();

      // The slot is there already.
      await allow(allowed);
      await source.query(`insert into t values (2, 'b')`);
      const before = await slotAndCheckpoint(source, target);
      pipeline.start();
      await haltedFor(pipeline, 'decoder/plugin_not_allowed');
      expect(await slotAndCheckpoint(source, target)).toEqual(before);
      await allow(run);
      pipeline.start();
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1, 2]);
    },
  );

  const UNSEEN: DecoderOptions[] = [
    { publication: 'p' },
    ...DECODERS.slice(0, 2).map(([, , options]) => options),
  ];

  it.each(UNSEEN)(
    'where the role may not read what is allowed, with and without a slot: $decoder',
    async (options) => {
      const { source, target } = await pglogicalSource(suite);
      const user = `role_${source.name}`;
      const password = 'planted-secret';
      await source.query(
        `create role ${user} login replication password '${password}'; grant usage on schema pglogical to ${user};
         grant select on pglogical.replication_set, pglogical.replication_set_table to ${user};
         create publication p for table t`,
      );
      onTestFinished(async () => {
        await source.query(`drop owned by ${user}; drop role ${user}`);
      });
      const { pipeline, applied } = capture(source, {
        target,
        connection: { ...source.connection, user, password },
        ...options,
      });
      const all = `'pgoutput', 'wal2json', 'pglogical_output'`;
      for (const id of [1, 2]) {
        await allow(`'other'`);
        await source.query('insert into t values ($1)', [id]);
        const before = await slotAndCheckpoint(source, target);
        pipeline.start();
        const halt = await haltedFor(pipeline, 'decoder/plugin_not_allowed');
        expect(halt.detail).toMatch(
          /^run, with what is listed already for the dots: ALTER SYSTEM SET output_plugin_libraries = …, '\w+'$/,
        );
        expect(await slotAndCheckpoint(source, target)).toEqual(before);
        await allow(all);
        pipeline.start();
        await pipeline.caughtUp();
        await pipeline.stop();
      }
      expect(inserted(applied, 'id')).toEqual([2]);
    },
  );

  /** Sessions that begin from now on have it. */
  async function allow(libraries: string): Promise<void> {
    const { server } = suite;
    const setting = 'output_plugin_libraries';
    await server.query(`alter system set ${setting} = ${libraries}`);
    await server.query('select pg_reload_conf()');
    const rows = await server.query<{ setting: string }>(
      `select setting from pg_file_settings where name = $1 order by seqno desc limit 1`,
      [setting],
    );
    await waitFor(async () => {
      const [row] = await server.query<{ value: string }>(
        `select current_setting('${setting}') as value`,
      );
      return row?.value === rows[0]?.setting;
    });
  }
});
