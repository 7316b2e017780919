import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer();
const NOTHING = { slots: [], checkpoints: [] };

/** A role with a name that has to be quoted. */
async function role(source: TestDatabase, attributes: string): Promise<string> {
  const name = `Role ${source.name}`;
  await source.query(
    `create role "${name}" login password 'planted-secret' ${attributes}`,
  );
  onTestFinished(
    async () => void (await suite.server.query(`drop role "${name}"`)),
  );
  return name;
}

describe('preflight/replication_role', () => {
  it('halts where the role lacks REPLICATION, and goes on when it has it by the SQL of the halt (U05)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const user = await role(source, '');
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, user, password: 'planted-secret' },
    });
    for (let round = 0; round < 2; round++) {
      pipeline.start();
      const halt = await haltedFor(pipeline, 'preflight/replication_role');
      expect(halt.detail).toBe(
        `the role "${user}" lacks REPLICATION; run: ALTER ROLE "${user}" REPLICATION`,
      );
      expect(JSON.stringify(pipeline.status())).not.toContain('planted-secret');
      expect(await slotAndCheckpoint(source, target)).toEqual(NOTHING);
    }
    const { detail = '' } = pipeline.halt ?? {};
    await source.query(/run: (.*)$/.exec(detail)?.[1] ?? '');
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('names rds_replication where there is such a role (U05)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const user = await role(source, '');
    await suite.server.query('create role rds_replication');
    onTestFinished(
      async () => void (await suite.server.query('drop role rds_replication')),
    );
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, user, password: 'planted-secret' },
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'preflight/replication_role');
    expect(halt.detail).toMatch(
      new RegExp(`run: GRANT rds_replication TO "${user}"$`),
    );
  });
});

it('a role without CONNECT is not taken for one without REPLICATION', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const user = await role(source, 'replication');
  await source.query(`revoke connect on database "${source.name}" from public`);
  const { pipeline } = capture(source, {
    target,
    connection: { ...source.connection, user, password: 'planted-secret' },
  });
  pipeline.start();
  const halt = await haltedFor(pipeline, 'command_error/permanent');
  expect(halt.detail).toMatch(/42501.*GRANT CONNECT ON DATABASE … TO …$/);
  expect(await slotAndCheckpoint(source, target)).toEqual(NOTHING);
  await source.query(`grant connect on database "${source.name}" to "${user}"`);
  onTestFinished(async () => {
    await pipeline.stop();
    await source.query(
      `revoke connect on database "${source.name}" from "${user}"`,
    );
  });
  pipeline.start();
  await pipeline.whenStreaming();
});

describe('a role that may replicate', () => {
  it('needs no right on any table, and no write access (O01, S04)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const user = await role(source, 'replication');
    await source.query('revoke all on schema public from public');
    const { pipeline, applied } = capture(source, {
      target,
      connection: {
        ...source.connection,
        user,
        password: 'planted-secret',
        options: '-c default_transaction_read_only=on',
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });
});
