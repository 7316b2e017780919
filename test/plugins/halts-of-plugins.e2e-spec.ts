import { describe, expect, it, onTestFinished } from 'vitest';
import type { HaltCode } from '../../lib/engine/model/halts.js';
import type { DecoderOptions } from '../../lib/engine/options/decoder-options.js';
import { capture, inserted } from '../support/capture.js';
import { haltedFor, slotAndCheckpoint } from '../support/halted.js';
import { pglogicalSource } from '../support/pglogical-source.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { replaceText, tamperingProxy } from '../support/tampering-proxy.js';
import { TestDatabase } from '../support/test-database.js';

const NOTHING = { slots: [], checkpoints: [] };

const DECODERS: DecoderOptions[] = [
  { decoder: 'wal2json', tables: [['public', 't']] },
  { decoder: 'pglogical', replicationSets: 'default' },
];

describe.skipIf(noPluginServer)('the output plugin', () => {
  const suite = usePluginServer();

  it.each(DECODERS)(
    'of $decoder cannot be used in a database that is not UTF8',
    async (options) => {
      const target = await suite.database('target');
      const name = `latin1_${target.name}`;
      await suite.server.query(
        `create database "${name}" encoding 'LATIN1' locale 'C' template template0`,
      );
      const source = new TestDatabase(suite.server, name);
      onTestFinished(() => source.close());
      await source.query('create table t(id int primary key)');
      const { pipeline } = capture(source, { target, ...options });
      pipeline.start();
      const halt = await haltedFor(pipeline, 'decoder/encoding_unsupported');
      expect(halt.detail).toBe('the database has the encoding LATIN1');
      expect(await slotAndCheckpoint(source, target)).toEqual(NOTHING);
    },
  );

  it.each(DECODERS)(
    'of $decoder is not that of a slot of pgoutput',
    async (options) => {
      const { source, target } = await pglogicalSource(suite);
      await source.query('select pg_create_logical_replication_slot($1, $2)', [
        `slot_${source.name}`,
        'pgoutput',
      ]);
      const before = await slotAndCheckpoint(source, target);
      const { pipeline } = capture(source, { target, ...options });
      pipeline.start();
      const halt = await haltedFor(pipeline, 'slot/not_usable');
      expect(halt.detail).toContain('the slot uses another output plugin, ');
      expect(await slotAndCheckpoint(source, target)).toEqual(before);
    },
  );

  it.each(['wal2json', 'pglogical_output'])(
    'of a slot is %s, and the decoder is pgoutput',
    async (plugin) => {
      const { source, target } = await pglogicalSource(suite);
      await source.query('create publication p for table t');
      await source.query('select pg_create_logical_replication_slot($1, $2)', [
        `slot_${source.name}`,
        plugin,
      ]);
      const { pipeline } = capture(source, { target });
      pipeline.start();
      const halt = await haltedFor(pipeline, 'slot/not_usable');
      expect(halt.detail).toContain('the slot uses another output plugin, ');
    },
  );

  const OLDER: [
    decoder: DecoderOptions,
    from: string,
    to: string,
    code: HaltCode,
  ][] = [
    [
      { decoder: 'wal2json', tables: [['public', 't']] },
      'numeric-data-types-as-string',
      'numeric-data-types-as-number',
      'decoder/option_unsupported',
    ],
    [
      { decoder: 'wal2json', tables: [['public', 't']] },
      `"format-version" '2'`,
      `"format-version" '3'`,
      'decoder/option_unsupported',
    ],
    [
      { decoder: 'pglogical', replicationSets: 'default' },
      `min_proto_version '1'`,
      `min_proto_version '2'`,
      'decoder/protocol_unsupported',
    ],
  ];

  it.each(OLDER)(
    'of $decoder refuses what it is asked, because it does not know %s: %s',
    async (options, from, to, code) => {
      const { source, target } = await pglogicalSource(suite);
      let old = true;
      const connection = await tamperingProxy(
        source.connection,
        () => {},
        (command) => {
          if (old) replaceText(command, from, to);
        },
      );
      const { pipeline, applied } = capture(source, {
        target,
        connection,
        ...options,
      });
      pipeline.start();
      await haltedFor(pipeline, code);
      await source.query(`insert into t values (1, 'a')`);
      const before = await slotAndCheckpoint(source, target);
      pipeline.start();
      const halt = await haltedFor(pipeline, code);
      expect(halt.detail).toMatch(
        /^the server answered (22023|0A000) to what \w+ was asked$/,
      );
      expect(await slotAndCheckpoint(source, target)).toEqual(before);

      old = false;
      pipeline.start();
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1]);
    },
  );
});
