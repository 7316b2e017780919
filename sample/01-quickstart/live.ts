import { setTimeout as sleep } from 'node:timers/promises';
import { ApplicationProcess } from './application-process.js';
import type { Environment } from './environment.js';
import { describe, Progress } from './progress.js';
import { Writer } from './writer/writer.js';

const STATUS_INTERVAL_MS = 1_000;
/** Each of the writer's connections waits this long before a transaction. */
const PAUSE_MS = 25;

/** Copies a shop that is always busy, and shows how it goes, until it is told to stop. */
export async function runLive(
  environment: Environment,
  stop: AbortSignal,
): Promise<void> {
  const application = await ApplicationProcess.create(environment);
  const writer = new Writer({
    connection: environment.source.connection,
    seed: Date.now(),
    pace: () => sleep(PAUSE_MS),
  });
  application.start();
  try {
    await application.ready();
    print(environment, application);
    const writing = writer.write(Number.MAX_SAFE_INTEGER);
    try {
      await Promise.race([
        writing,
        showProgress(environment, application, stop),
      ]);
    } finally {
      writer.stop();
      await Promise.allSettled([writing]);
    }
  } finally {
    await application.stop();
  }
}

function print(
  environment: Environment,
  application: ApplicationProcess,
): void {
  console.log(`Source   ${environment.source.url}`);
  console.log(`Copy     ${environment.target.url}`);
  for (const probe of ['live', 'ready', 'startup']) {
    console.log(`Health   ${application.address}/health/${probe}`);
  }
  console.log('Ctrl-C stops it all and leaves nothing behind.\n');
}

async function showProgress(
  environment: Environment,
  application: ApplicationProcess,
  stop: AbortSignal,
): Promise<void> {
  const progress = new Progress(environment);
  while (!stop.aborted) {
    await sleep(STATUS_INTERVAL_MS, undefined, { signal: stop }).catch(
      () => {},
    );
    if (!application.running) throw new Error('The application ended.');
    console.log(describe(await progress.read()));
  }
}
