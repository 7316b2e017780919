import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** One core for the server, another for the reader, so that neither runs at the other's expense. */
export interface Cores {
  readonly server: number;
  readonly client: number;
}

/** The first two cores that this process may use; `null` where there are not two, or no `taskset`. */
export function findCores(): Cores | null {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    const status = readFileSync('/proc/self/status', 'latin1');
    const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(status)?.[1] ?? '';
    const [server, client] = list.split(',').flatMap(coresOfRange);
    if (server === undefined || client === undefined) return null;
    return { server, client };
  } catch {
    return null;
  }
}

/** Keeps a process, and what it starts from now on, on one core. */
export function pin(pid: number, core: number): void {
  execFileSync('taskset', ['-a', '-p', '-c', String(core), String(pid)], {
    stdio: 'ignore',
  });
}

/** The command that runs a program on the client's core, or anywhere without cores. */
export function onClientCore(
  cores: Cores | null,
  program: string,
  args: readonly string[],
): { readonly program: string; readonly args: readonly string[] } {
  if (cores === null) return { program, args };
  return {
    program: 'taskset',
    args: ['-c', String(cores.client), program, ...args],
  };
}

/** `0-2` is 0, 1 and 2. */
function coresOfRange(range: string): number[] {
  const [first = 0, last = first] = range.split('-').map(Number);
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
