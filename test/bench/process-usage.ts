import { readFileSync } from 'node:fs';

/** Linux counts the time of processes in hundredths of a second, whatever its timer does. */
const TICKS_PER_SECOND = 100;

/** Seconds of CPU that a process has used; `null` when nobody can tell. */
export function cpuSeconds(pid: number): number | null {
  return ticks(pid, 14);
}

/** Seconds of CPU that the ended children of a process have used; `null` when nobody can tell. */
export function endedChildrenCpuSeconds(pid: number): number | null {
  return ticks(pid, 16);
}

/** Most memory that a process has held, in MB; `null` when nobody can tell. */
export function peakRssMb(pid: number): number | null {
  const status = readProc(pid, 'status');
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(status ?? '')?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) / 1024;
}

/** Process ids of the children of a process; `null` when nobody can tell. */
export function childrenOf(pid: number): ReadonlySet<string> | null {
  const children = readProc(pid, `task/${pid}/children`);
  return children === null
    ? null
    : new Set(children.split(' ').filter((child) => child !== ''));
}

/**
 * Adds a time in user mode and the time in the kernel beside it.
 *
 * @see {@link https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html | proc_pid_stat(5)}
 */
function ticks(pid: number, field: 14 | 16): number | null {
  const stat = readProc(pid, 'stat');
  if (stat === null) return null;
  // The second field is the name, in brackets, and may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const user = Number(fields[field - 3]);
  const kernel = Number(fields[field - 2]);
  return (user + kernel) / TICKS_PER_SECOND;
}

function readProc(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return null;
  }
}
