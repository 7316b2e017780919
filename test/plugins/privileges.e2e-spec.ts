import { describe, expect, it, onTestFinished } from 'vitest';
import type { DecoderOptions } from '../../lib/engine/options/decoder-options.js';
import { capture, inserted } from '../support/capture.js';
import { pglogicalSource } from '../support/pglogical-source.js';
import { haltedFor } from '../support/halted.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { present } from '../support/present.js';
import type { TestDatabase } from '../support/test-database.js';

interface Grant {
  readonly options: DecoderOptions;
  /** What the role needs beside REPLICATION. */
  readonly needs: readonly string[];
}

const GRANTS: readonly Grant[] = [
  {
    options: { decoder: 'wal2json', tables: [['public', 't']] },
    needs: [],
  },
  {
    options: { decoder: 'pglogical', replicationSets: 'default' },
    needs: [
      'usage on schema pglogical',
      'select on pglogical.replication_set, pglogical.replication_set_table',
    ],
  },
];

describe.skipIf(noPluginServer)('a role that may replicate', () => {
  const suite = usePluginServer();

  it.each(GRANTS)(
    'needs nothing more for $options.decoder than: $needs',
    async ({ options, needs }) => {
      const { source, target } = await pglogicalSource(suite);
      await source.query(
        'revoke all on schema public from public; revoke all on t from public; revoke all on schema pglogical from public',
      );
      const user = await role(source);
      for (const need of needs) await source.query(`grant ${need} to ${user}`);
      const { pipeline, applied } = capture(source, {
        target,
        connection: {
          ...source.connection,
          user,
          password: 'planted-secret',
          options: '-c default_transaction_read_only=on',
        },
        schemaCheckInterval: options.decoder === 'wal2json' ? 100 : undefined,
        ...options,
      });
      const warnings: string[] = [];
      pipeline.on('warning', ({ message }) => warnings.push(message));
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query(`insert into t values (1, 'a')`);
      await source.query('alter table t add c int');
      await source.query(`insert into t values (2, 'b', 2)`);
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1, 2]);
      expect(inserted(applied, 'c')).toEqual([undefined, 2]);
      expect(warnings).toEqual([]);
      await pipeline.stop();
    },
  );

  it('halts where it lacks that, and goes on when it has it', async () => {
    const { source, target } = await pglogicalSource(suite);
    const user = await role(source);
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, user, password: 'planted-secret' },
      decoder: 'pglogical',
      replicationSets: 'default',
    });
    const { needs } = present(GRANTS[1]);
    for (const need of needs) {
      pipeline.start();
      const halt = await haltedFor(pipeline, 'command_error/permanent');
      expect(halt.detail).toContain('42501');
      await source.query(`grant ${need} to ${user}`);
    }
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.stop();
  });

  async function role(source: TestDatabase): Promise<string> {
    const name = `role_${source.name}`;
    await source.query(
      `create role ${name} login replication password 'planted-secret'`,
    );
    onTestFinished(async () => {
      await source.query(`drop owned by ${name}; drop role ${name}`);
    });
    return name;
  }
});
