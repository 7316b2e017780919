import { describe, expect, it } from 'vitest';
import {
  createNode,
  peekFrames,
  PGLOGICAL_OPTIONS,
  WAL2JSON_OPTIONS,
} from '../support/plugin-frames.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';

describe.skipIf(noPluginServer)('the server of the plugins', () => {
  const suite = usePluginServer();

  it('streams through wal2json', async () => {
    const database = await suite.database();
    await database.query('create table t(id int primary key)');
    await database.query('select pg_create_logical_replication_slot($1, $2)', [
      database.name,
      'wal2json',
    ]);
    await database.query('insert into t values (7)');
    const frames = await peekFrames(database, database.name, WAL2JSON_OPTIONS);
    const documents = frames.map(parse);
    expect(documents).toMatchObject([
      { action: 'B' },
      {
        action: 'I',
        schema: 'public',
        table: 't',
        columns: [{ name: 'id', type: 'integer', typeoid: 23, value: '7' }],
        pk: [{ name: 'id' }],
      },
      { action: 'C' },
    ]);
  });

  it('streams through pglogical', async () => {
    const database = await suite.database();
    await database.query('create table t(id int primary key)');
    await createNode(database);
    await database.query(
      `select pglogical.replication_set_add_table('default', 't')`,
    );
    await database.query('select pg_create_logical_replication_slot($1, $2)', [
      database.name,
      'pglogical_output',
    ]);
    await database.query('insert into t values (7)');
    const frames = await peekFrames(database, database.name, {
      ...PGLOGICAL_OPTIONS,
      'pglogical.replication_set_names': 'default',
    });
    const tags = frames.map((frame) => frame.toString('latin1', 0, 1));
    expect(tags.join('')).toBe('SBRIC');
    expect(frames[3]?.toString('latin1', 6)).toBe('NT\0\u0001t\0\0\0\u00027\0');
  });

  it('knows no plugin that it does not list', async () => {
    const database = await suite.database();
    const creation = database.query(
      'select pg_create_logical_replication_slot($1, $2)',
      [database.name, 'test_decoding'],
    );
    await expect(creation).rejects.toMatchObject({ code: '42501' });
  });
});

function parse(frame: Buffer): unknown {
  return JSON.parse(frame.toString());
}
