import { Environment } from './environment.js';
import { Proof } from './proof.js';

const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interruption.abort());
}

console.log('Starting a PostgreSQL server, billing and the relay …');
const environment = await Environment.start();
let verdict: string | null = null;
try {
  const { result, passed } = await new Proof(environment).run(
    interruption.signal,
  );
  verdict = JSON.stringify(result);
  if (!passed) process.exitCode = 1;
} catch (error) {
  process.exitCode = 1;
  console.error(interruption.signal.aborted ? 'Interrupted.' : error);
} finally {
  await environment.remove();
}
if (verdict !== null) console.log(verdict);
