import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClientConfig } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PipelineOptions } from '../lib/engine/options/pipeline-options.js';
import { capture, type Capture, inserted } from './support/capture.js';
import { chop } from './support/chopping-proxy.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';
import { type SocketLog, watchSockets } from './support/watched-sockets.js';

const suite = useServer({ tls: true });

const BACKLOG = 10_000;
const ROW_BYTES = 600;
const PATIENCE = { timeout: 25_000 };

/** A source with a slot and a backlog behind it. */
async function backlog(): Promise<TestDatabase> {
  const { source } = await sourceAndTarget(suite);
  await source.query('select pg_create_logical_replication_slot($1, $2)', [
    `backlog_${source.name}`,
    'pgoutput',
  ]);
  await source.query(
    `do $$ begin for i in 0..${BACKLOG / 100 - 1} loop
       insert into t select i * 100 + g, repeat('x', ${ROW_BYTES}) from generate_series(1, 100) g; commit;
     end loop; end $$`,
  );
  return source;
}

/** The backlog, once. */
const WHOLE = Array.from({ length: BACKLOG }, (_, index) => index + 1);

/** A pipeline on a copy of the backlog's slot, started. */
async function reader(
  source: TestDatabase,
  connection: ClientConfig,
  options: Partial<PipelineOptions> = {},
): Promise<Capture & { log: SocketLog }> {
  const slotName = `copy_${Math.random().toString(36).slice(2)}`;
  await source.query('select pg_copy_logical_replication_slot($1, $2)', [
    `backlog_${source.name}`,
    slotName,
  ]);
  const watched = watchSockets({ ...source.connection, ...connection });
  const captured = capture(source, {
    target: source,
    checkpoint: { kind: 'reader', read: async () => null },
    readPacing: true,
    ...options,
    connection: watched.connection,
    slotName,
  });
  captured.pipeline.start();
  return { ...captured, log: watched.log };
}

async function chopped(source: TestDatabase): Promise<ClientConfig> {
  const address = (await chop(source.connection, 0)).address();
  if (address === null || typeof address === 'string')
    throw new Error('The proxy has no port.');
  return { host: '127.0.0.1', port: address.port };
}

/** Whether all of the backlog has been handed over. */
function whole({ calls }: Capture): boolean {
  return calls.length >= BACKLOG / 100;
}

describe('read pacing', () => {
  it('reads a dense stream over TCP in far larger pieces than without it, and every row once', async () => {
    const source = await backlog();
    const connection = await chopped(source);
    const eager = await reader(source, connection, { readPacing: false });
    await waitFor(() => whole(eager), PATIENCE);
    const { reading: eagerReading } = eager.pipeline.status();
    await eager.pipeline.stop();

    const paced = await reader(source, connection);
    let seen = false;
    paced.pipeline.on('delivered', () => {
      seen ||= paced.pipeline.status().reading.pacing;
    });
    await waitFor(() => whole(paced), PATIENCE);
    const { reading } = paced.pipeline.status();
    await paced.pipeline.stop();

    expect(inserted(eager.calls, 'id')).toEqual(WHOLE);
    expect(inserted(paced.calls, 'id')).toEqual(WHOLE);
    expect(seen).toBe(true);
    expect(paced.log.reads).toBeLessThan(eager.log.reads / 3);
    expect(reading.bytesPerRead).toBeGreaterThan(eagerReading.bytesPerRead * 3);
    expect(eagerReading.readsPerSecond).toBeGreaterThan(0);
    expect(paced.pipeline.status().reading).toEqual({
      readsPerSecond: 0,
      bytesPerRead: 0,
      pacing: false,
    });
    // One pause is that of the start.
    expect(paced.log.pauses).toBeGreaterThan(10);
    expect(eager.log.pauses).toBe(1);
  }, 60_000);

  it('paces TLS too', async () => {
    const source = await backlog();
    const connection = await chopped(source);
    const secure = { ...connection, ssl: { rejectUnauthorized: false } };
    const paced = await reader(source, secure);
    let seen = false;
    paced.pipeline.on('delivered', () => {
      seen ||= paced.pipeline.status().reading.pacing;
    });
    await waitFor(() => whole(paced), PATIENCE);
    expect(inserted(paced.calls, 'id')).toEqual(WHOLE);
    expect(seen).toBe(true);
  }, 60_000);

  it('never paces a Unix socket, however dense the stream', async () => {
    const source = await backlog();
    const folder = mkdtempSync(join(tmpdir(), 'chop-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { port } = source.connection;
    await chop(source.connection, join(folder, `.s.PGSQL.${port}`));
    const eager = await reader(source, { host: folder });
    await waitFor(() => whole(eager), PATIENCE);
    expect(inserted(eager.calls, 'id')).toEqual(WHOLE);
    expect(eager.log.reads).toBeGreaterThan(1_000);
    expect(eager.log.pauses).toBe(1);
  }, 60_000);

  it('does not begin at 100 transactions a second', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { connection, log } = watchSockets({ ...source.connection });
    const { pipeline, calls } = capture(source, {
      target,
      connection,
      checkpoint: { kind: 'reader', read: async () => null },
      readPacing: true,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const before = log.pauses;
    await source.query(
      `do $$ begin for i in 1..150 loop insert into t values (i); commit; perform pg_sleep(0.01); end loop; end $$`,
    );
    await waitFor(() => calls.length === 150);
    expect(log.pauses).toBe(before);
  });

  it('ends quickly when it is stopped in the middle of a paced stream, and loses and repeats nothing', async () => {
    const source = await backlog();
    const connection = await chopped(source);
    const { pipeline, calls, log } = await reader(source, connection);
    await waitFor(() => log.pauses > 5 && pipeline.status().reading.pacing);
    const began = performance.now();
    await pipeline.stop();
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(calls.length).toBeLessThan(BACKLOG / 100);
    pipeline.start();
    await waitFor(() => calls.length >= BACKLOG / 100, PATIENCE);
    expect(inserted(calls, 'id')).toEqual(WHOLE);
  }, 60_000);
});
