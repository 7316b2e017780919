import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ClientConfig } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ConnectionOption } from '../lib/engine/options/pipeline-options.js';
import { capture, inserted, type Capture } from './support/capture.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ tls: true, settings: { log_connections: 'on' } });

/** Where a pipeline connects to. */
interface Place {
  readonly settings: ClientConfig;
  readonly url: string;
  readonly caFile: string;
}

type Form = (place: Place) => ConnectionOption;

function query(parameters: string): Form {
  return ({ url, caFile }) =>
    `${url}?${parameters.replace('CA', encodeURIComponent(caFile))}`;
}

function settings(ssl: ClientConfig['ssl']): Form {
  return (place) => ({ ...place.settings, ssl });
}

/** A role of its own for the pipeline, so that its sessions are told from those of the test. */
async function placeOf(source: TestDatabase): Promise<Place> {
  const user = `role_${source.name}`;
  await source.query(`create role ${user} login replication password 'secret'`);
  onTestFinished(
    async () => void (await suite.server.query(`drop role ${user}`)),
  );
  const { host, port } = source.connection;
  return {
    settings: { ...source.connection, user, password: 'secret' },
    url: `postgresql://${user}:secret@${host}:${port}/${source.name}`,
    caFile: await writeCaFile(),
  };
}

async function writeCaFile(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'replicant-ca-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'ca.crt');
  writeFileSync(file, suite.server.certificate ?? '');
  return file;
}

/** A pipeline that connects in this form, and how its sessions were carried as the server has logged them. */
async function connecting(
  form: Form,
): Promise<Capture & { source: TestDatabase; carried: () => string[] }> {
  const { source, target } = await sourceAndTarget(suite);
  const place = await placeOf(source);
  const authorized = new RegExp(
    `connection authorized: user=${place.settings.user}( |$)`,
  );
  const running = capture(source, { target, connection: form(place) });
  running.pipeline.start();
  return {
    ...running,
    source,
    carried: () =>
      suite.server
        .log()
        .split('\n')
        .filter((line) => authorized.test(line))
        .map((line) => (line.includes('SSL enabled') ? 'TLS' : 'plain')),
  };
}

describe('TLS (U02)', () => {
  it.each([
    ['sslmode=no-verify', query('sslmode=no-verify'), 'TLS'],
    [
      'sslmode=verify-full and its CA',
      query('sslmode=verify-full&sslrootcert=CA'),
      'TLS',
    ],
    [
      'sslmode=verify-ca and its CA',
      query('sslmode=verify-ca&sslrootcert=CA'),
      'TLS',
    ],
    [
      'sslmode=require and its CA',
      query('sslmode=require&sslrootcert=CA'),
      'TLS',
    ],
    [
      'sslmode=require as libpq reads it',
      query('uselibpqcompat=true&sslmode=require'),
      'TLS',
    ],
    [
      'settings that verify nothing',
      settings({ rejectUnauthorized: false }),
      'TLS',
    ],
    [
      'settings with its CA',
      (place: Place) => settings({ ca: suite.server.certificate ?? '' })(place),
      'TLS',
    ],
    ['sslmode=disable', query('sslmode=disable'), 'plain'],
    ['no word of it in a string', query(''), 'plain'],
    ['settings without', settings(false), 'plain'],
    [
      'a string that disables it, beside settings that ask for it',
      ({ url }: Place) => ({
        connectionString: `${url}?sslmode=disable`,
        ssl: true,
      }),
      'plain',
    ],
  ])('is the same for all sessions: %s', async (_, form, carrier) => {
    const { source, pipeline, applied, carried } = await connecting(form);
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    // Asks an ordinary session for the end of the WAL.
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
    expect(carried().length).toBeGreaterThanOrEqual(2);
    expect(new Set(carried())).toEqual(new Set([carrier]));
  });

  it.each([
    ['sslmode=prefer', query('sslmode=prefer')],
    ['sslmode=require', query('sslmode=require')],
    ['sslmode=verify-ca', query('sslmode=verify-ca')],
    ['sslmode=verify-full', query('sslmode=verify-full')],
    ['settings', settings(true)],
  ])('verifies the certificate unless told otherwise: %s', async (_, form) => {
    const { pipeline, carried } = await connecting(form);
    await waitFor(() => pipeline.status().attempt >= 1);
    expect(pipeline.reason).toBe(
      'connection lost (DEPTH_ZERO_SELF_SIGNED_CERT)',
    );
    await expect(pipeline.caughtUp()).rejects.toThrow(
      'connection lost (DEPTH_ZERO_SELF_SIGNED_CERT)',
    );
    expect(carried()).toEqual([]);
  });
});
