// Watches over one server for a process that may die at any moment, by SIGKILL too. Its standard input is a pipe from
// that process: when it ends, the server is shut down and its folder removed. After an orderly removal there is
// nothing left to do.
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const folder = process.argv[2] ?? '';

function postmaster() {
  try {
    const file = path.join(folder, 'data', 'postmaster.pid');
    return Number.parseInt(readFileSync(file, 'utf8'), 10);
  } catch {
    return null;
  }
}

/** @param {number} pid @param {NodeJS.Signals | 0} name */
function signal(pid, name) {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

async function cleanUp() {
  const pid = postmaster();
  if (pid !== null) {
    // SIGQUIT is the immediate shutdown; Windows knows no signals.
    signal(pid, process.platform === 'win32' ? 'SIGKILL' : 'SIGQUIT');
    for (let tries = 0; tries < 200 && signal(pid, 0); tries++) await sleep(25);
    signal(pid, 'SIGKILL');
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
}

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => {});
process.stdin.on('error', () => {});
process.stdin.on('close', () => void cleanUp());
process.stdin.resume();
