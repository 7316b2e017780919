import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  peekFrames,
  PGLOGICAL_OPTIONS,
  type PluginOptions,
  WAL2JSON_OPTIONS,
} from '../support/plugin-frames.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import type { TestDatabase } from '../support/test-database.js';

const FIXTURES = new URL('../fixtures/', import.meta.url);

/** Writes the fixtures that the unit tests of the decoders read, instead of comparing with them. */
const recordAnew = process.env['RECORD_FRAMES'] !== undefined;

interface Recording {
  readonly server: string;
  /** In hexadecimal digits. */
  readonly frames: readonly string[];
}

describe.skipIf(noPluginServer)('the recorded frames', () => {
  const suite = usePluginServer();

  it.each([
    {
      file: 'wal2json-v2.json',
      plugin: 'wal2json',
      options: WAL2JSON_OPTIONS,
      steady: steadyDocument,
      kinds: ['B', 'C', 'D', 'I', 'M', 'T', 'U'],
    },
    {
      file: 'pglogical-v1.json',
      plugin: 'pglogical_output',
      options: {
        ...PGLOGICAL_OPTIONS,
        'pglogical.replication_set_names': 'default,default_insert_only',
      },
      steady: steadyBytes,
      kinds: ['B', 'C', 'D', 'I', 'O', 'R', 'S', 'U'],
    },
  ])(
    'are what $plugin sends still',
    async ({ file, plugin, options, steady, kinds }) => {
      const database = await suite.database();
      const frames = await play(database, plugin, options);
      const recording = new URL(file, FIXTURES);
      if (recordAnew) write(recording, await serverName(database), frames);
      const recorded = read(recording);
      expect(frames.map(steady)).toEqual(recorded.map(steady));
      const found = new Set(recorded.map((frame) => kindOf(plugin, frame)));
      expect([...found].toSorted()).toEqual(kinds);
    },
  );
});

/** Runs the lines of plugins.sql, and takes what the slot has then. */
async function play(
  database: TestDatabase,
  plugin: string,
  options: PluginOptions,
): Promise<Buffer[]> {
  const client = await database.connect();
  await client.query(
    `set timezone = 'UTC'; set bytea_output = 'hex'; set extra_float_digits = 1`,
  );
  for (const line of readFileSync(new URL('plugins.sql', FIXTURES), 'utf8')
    .split('\n')
    .filter((text) => text !== '' && !text.startsWith('--'))) {
    const own = /^pglogical: (.*)$/u.exec(line)?.[1];
    if (line === 'slot')
      await client.query('select pg_create_logical_replication_slot($1, $2)', [
        database.name,
        plugin,
      ]);
    else if (own === undefined) await client.query(line);
    else if (plugin === 'pglogical_output') await client.query(own);
  }
  return peekFrames(database, database.name, options);
}

async function serverName(database: TestDatabase): Promise<string> {
  const [row] = await database.query<{ server_version: string }>(
    'show server_version',
  );
  return `PostgreSQL ${row?.server_version}`;
}

function write(file: URL, server: string, frames: readonly Buffer[]): void {
  const recording: Recording = {
    server,
    frames: frames.map((frame) => frame.toString('hex')),
  };
  writeFileSync(file, `${JSON.stringify(recording, null, 2)}\n`);
}

function read(file: URL): Buffer[] {
  const recording: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!isRecording(recording)) throw new Error('not a recording');
  return recording.frames.map((hex) => Buffer.from(hex, 'hex'));
}

function isRecording(value: unknown): value is Recording {
  return (
    typeof value === 'object' &&
    value !== null &&
    'frames' in value &&
    Array.isArray(value.frames)
  );
}

function kindOf(plugin: string, frame: Buffer): string {
  return plugin === 'wal2json'
    ? frame.toString('utf8', '{"action":"'.length, '{"action":"B'.length)
    : frame.toString('latin1', 0, 1);
}

/** Without positions, transactions, times and the oids of user types. */
function steadyDocument(frame: Buffer): string {
  return frame
    .toString()
    .replace(/"xid":\d+/u, '"xid":0')
    .replace(/"timestamp":"[^"]*"/u, '"timestamp":""')
    .replaceAll(/"(lsn|nextlsn)":"[^"]*"/gu, '"$1":""')
    .replaceAll(/"typeoid":\d{5,}/gu, '"typeoid":0');
}

/** Without positions, transactions, times and the oids of tables; of what the server says of itself, only that it does. */
function steadyBytes(frame: Buffer): string {
  const kind = frame.toString('latin1', 0, 1);
  const head = kind === 'B' ? 22 : kind === 'C' ? 26 : 6;
  if (kind === 'S') return kind;
  return kind + withoutTime(frame.toString('utf8', head));
}

/** The queue of truncations has the time of each. */
function withoutTime(text: string): string {
  return text.replace(
    /.\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\+00\0t\0\0\0\tpostgres/u,
    'postgres',
  );
}
