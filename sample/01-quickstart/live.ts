import { setTimeout as sleep } from 'node:timers/promises';
import { ApplicationProcess } from './application-process.js';
import type { Pair } from './environment.js';
import { describe, Progress } from './progress.js';
import { describeSnapshot } from './snapshot-bar.js';
import { Writer } from './writer/writer.js';

/** In the shop before the application starts. */
export const EXISTING_ROWS = 100_000;
const STATUS_INTERVAL_MS = 1_000;
const BAR_INTERVAL_MS = 100;
/** Each of the writer's connections waits this long before a transaction. */
const PAUSE_MS = 25;

/** Copies a shop that is always busy, and shows how it goes, until it is told to stop. */
export async function runLive(pair: Pair, stop: AbortSignal): Promise<void> {
  const application = await ApplicationProcess.create(pair);
  const writer = new Writer({
    connection: pair.source.connection,
    seed: Date.now(),
    existing: EXISTING_ROWS,
    pace: () => sleep(PAUSE_MS),
  });
  application.start();
  try {
    const writing = writer.write(Number.MAX_SAFE_INTEGER);
    try {
      await Promise.race([writing, show(pair, application, stop)]);
    } finally {
      writer.stop();
      await Promise.allSettled([writing]);
    }
  } finally {
    await application.stop();
  }
}

async function show(
  pair: Pair,
  application: ApplicationProcess,
  stop: AbortSignal,
): Promise<void> {
  await showSnapshot(application, stop);
  if (!stop.aborted) print(pair, application);
  await showProgress(pair, application, stop);
}

/** A bar in place on a terminal; elsewhere the last one. */
async function showSnapshot(
  application: ApplicationProcess,
  stop: AbortSignal,
): Promise<void> {
  console.log('Copying the rows that exist already:');
  let line = '';
  for (let streaming = false; !streaming && !stop.aborted;) {
    await pause(BAR_INTERVAL_MS, stop);
    const status = await application.status();
    streaming = status?.state === 'streaming';
    if (!status?.snapshot) continue;
    line = describeSnapshot(status.snapshot);
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line}`);
  }
  console.log(process.stdout.isTTY ? '\n' : `${line}\n`);
}

function print(pair: Pair, application: ApplicationProcess): void {
  console.log(`Source   ${pair.source.url}`);
  console.log(`Copy     ${pair.target.url}`);
  for (const probe of ['live', 'ready', 'startup']) {
    console.log(`Health   ${application.address}/health/${probe}`);
  }
  console.log(`Status   ${application.address}/status`);
  console.log('Ctrl-C stops it all and leaves nothing behind.\n');
}

async function showProgress(
  pair: Pair,
  application: ApplicationProcess,
  stop: AbortSignal,
): Promise<void> {
  const progress = new Progress(pair);
  while (!stop.aborted) {
    await pause(STATUS_INTERVAL_MS, stop);
    if (!application.running) throw new Error('The application ended.');
    console.log(describe(await progress.read()));
  }
}

/** Ends early when it is told to stop. */
async function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal: stop }).catch(() => {});
}
