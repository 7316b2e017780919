import { Bootstrap } from './bootstrap.js';
import { Environment } from './environment.js';
import { EXISTING_ROWS, runLive } from './live.js';
import { Proof } from './proof.js';

const interruption = new AbortController();
// A second Ctrl-C ends the process at once; also then nothing stays behind.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interruption.abort());
}

console.log('Starting two PostgreSQL servers and the application …');
const environment = await Environment.start();
let verdict: string | null = null;
try {
  if (process.argv.includes('--once')) {
    const results = await prove(environment, interruption.signal);
    verdict = JSON.stringify(results.verdict);
    if (!results.passed) process.exitCode = 1;
  } else {
    const pair = await environment.createPair(EXISTING_ROWS);
    await runLive(pair, interruption.signal);
  }
} catch (error) {
  process.exitCode = 1;
  console.error(interruption.signal.aborted ? 'Interrupted.' : error);
} finally {
  await environment.remove();
}
if (verdict !== null) console.log(verdict);

/** The stream first, then the bootstrap of a populated shop in each mode. */
async function prove(
  on: Environment,
  stop: AbortSignal,
): Promise<{ verdict: object; passed: boolean }> {
  const stream = await new Proof(await on.createPair(0)).run(stop);
  const initial = await (await Bootstrap.create(on, 'initial', 0)).run(stop);
  const incremental = await (
    await Bootstrap.create(on, 'incremental', 2)
  ).run(stop);
  return {
    verdict: {
      ...stream.verdict,
      initial: initial.verdict,
      incremental: incremental.verdict,
    },
    passed: stream.passed && initial.passed && incremental.passed,
  };
}
