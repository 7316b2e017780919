import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from 'pg';
import { onTestFinished } from 'vitest';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { capture, type Capture } from './capture.js';
import { currentLsn } from './logical-slot.js';
import { type SourceAndTarget, sourceAndTarget } from './source-and-target.js';
import type { SuiteServer } from './suite.js';
import type { TestDatabase } from './test-database.js';

/** Of a server that streams transactions while they run, once they have reached this. */
export const STREAMING_SERVER = { logical_decoding_work_mem: '64kB' };

const SCHEMA = `create table t(id int primary key, v text);
  create publication p for table t`;

/** A transaction as its handler has read it. */
export interface Read {
  readonly xid: number;
  readonly ids: readonly number[];
  readonly ordinals: readonly number[];
  readonly messages: readonly string[];
}

/** A pipeline with the option streaming, and what its sink was given. */
export interface Streaming extends Capture, SourceAndTarget {
  /** In the order in which handlers were called. */
  readonly read: Read[];
  /** Waits until the sink has everything that was committed. */
  readonly caughtUp: () => Promise<void>;
  /** The next call of the handler rejects, in the middle of the transaction. */
  readonly failNext: () => void;
}

/**
 * Starts a pipeline over the table `t`, and waits until it streams.
 *
 * @param proxy - stands before the server
 */
export async function streamingOn(
  suite: SuiteServer,
  options: Partial<PipelineOptions> = {},
  proxy?: { readonly port: number },
): Promise<Streaming> {
  const { source, target } = await sourceAndTarget(suite, SCHEMA);
  const connection = {
    ...source.connection,
    ...(proxy && { port: proxy.port }),
  };
  const read: Read[] = [];
  let fails = false;
  const captured = capture(source, {
    target,
    connection,
    streaming: {},
    messages: true,
    ...options,
    sink: { message: { takes: () => false, handle: async () => {} } },
    apply: async (transaction) => {
      const whole = await readWhole(transaction, fails ? 100 : Infinity);
      if (fails) {
        fails = false;
        throw new Error('as told');
      }
      read.push(whole);
    },
  });
  captured.pipeline.start();
  await captured.pipeline.whenStreaming();
  return {
    ...captured,
    source,
    target,
    read,
    failNext: () => {
      fails = true;
    },
    caughtUp: async () => captured.pipeline.caughtUp(await currentLsn(source)),
  };
}

async function readWhole(
  transaction: Transaction,
  most: number,
): Promise<Read> {
  const ids: number[] = [];
  const ordinals: number[] = [];
  for await (const change of transaction.changes) {
    if (ordinals.length >= most) break;
    ordinals.push(change.ordinal);
    if (change.op === 'insert') ids.push(Number(change.record['id']));
  }
  const { xid, messages } = transaction;
  return {
    xid,
    ids,
    ordinals,
    messages: messages.map(({ content }) => content.toString('utf8')),
  };
}

export function insert(first: number, last: number): string {
  return `insert into t select g, repeat('x', 200) from generate_series(${first}, ${last}) g`;
}

export function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, n) => first + n);
}

/** What the server has streamed of transactions that were running. */
export async function streamedBytes(source: TestDatabase): Promise<number> {
  const [row] = await source.query<{ bytes: string }>(
    `select stream_bytes::text as bytes from pg_stat_replication_slots where slot_name = 'slot_' || current_database()`,
  );
  return Number(row?.bytes ?? 0);
}

/** Files below the folder. */
export async function filesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name.endsWith('.spill'));
}

/** A folder for files, which goes with the test. */
export async function spillFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'spill-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** A session that has begun a transaction, inserted so many rows and goes on. */
export async function begun(
  source: TestDatabase,
  rows: number,
  first = 0,
): Promise<Client> {
  const client = await source.connect();
  await client.query(
    `begin; ${insert(first * 100_000 + 1, first * 100_000 + rows)}`,
  );
  return client;
}
