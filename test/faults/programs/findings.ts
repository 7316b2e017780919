import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { setting } from '../../apps/settings.js';

/** How long what was closed may take to go. */
const PATIENCE_MS = 2_000;
const POLL_MS = 20;

/** Writes to the file of findings at once, since this process may be killed at any moment. */
export function record(finding: 'unhandled' | 'open', what: string): void {
  appendFileSync(setting('FINDINGS'), `${finding} ${what}\n`);
}

/** Records errors that nobody handled, which end this process still, and warnings of Node.js. */
export function recordUnhandled(): void {
  process.on('uncaughtExceptionMonitor', (error, origin) =>
    record('unhandled', `${origin} ${error.name}`),
  );
  process.on('warning', ({ name }) => record('unhandled', `warning ${name}`));
}

/** What keeps this process alive now. Output does so from its first use on, so it is used. */
export function openNow(): string[] {
  for (const stream of [process.stdout, process.stderr]) stream.write('');
  return process.getActiveResourcesInfo();
}

/** What keeps this process alive beyond what did so before, once what was closed has gone. */
export async function stillOpen(before: readonly string[]): Promise<string[]> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    await sleep(POLL_MS);
    const open = without(process.getActiveResourcesInfo(), before);
    if (open.length === 0 || performance.now() > end) return open;
  }
}

function without(all: readonly string[], some: readonly string[]): string[] {
  const left = [...all];
  for (const one of some) {
    const place = left.indexOf(one);
    if (place >= 0) left.splice(place, 1);
  }
  return left;
}
