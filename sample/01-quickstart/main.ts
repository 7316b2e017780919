import { Environment } from './environment.js';
import { runLive } from './live.js';
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
    const result = await new Proof(environment).run(interruption.signal);
    verdict = JSON.stringify(result.verdict);
    if (!result.passed) process.exitCode = 1;
  } else {
    await runLive(environment, interruption.signal);
  }
} catch (error) {
  process.exitCode = 1;
  console.error(interruption.signal.aborted ? 'Interrupted.' : error);
} finally {
  await environment.remove();
}
if (verdict !== null) console.log(verdict);
