// @ts-check
// Plain JavaScript, so that a reader that is not compiled with the others can use it too.
import { readFileSync } from 'node:fs';

/**
 * What a reader's process has used while it read.
 *
 * @typedef {object} Usage
 * @property {number} wallSeconds
 * @property {number} clientCpuSeconds
 * @property {number} peakRssMb of the whole life of the process
 */

/** Measures this process from the moment at which the server begins to stream. */
export class Stopwatch {
  #start = performance.now();
  #cpu = process.cpuUsage();

  /** @returns {Usage} */
  stop() {
    const wallSeconds = (performance.now() - this.#start) / 1000;
    const { user, system } = process.cpuUsage(this.#cpu);
    return {
      wallSeconds,
      clientCpuSeconds: (user + system) / 1e6,
      peakRssMb: peakRssMb(),
    };
  }
}

/** Linux hands the peak that getrusage knows from the parent on to the child; that of the memory map is our own. */
function peakRssMb() {
  try {
    const status = readFileSync('/proc/self/status', 'latin1');
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
    if (kilobytes !== undefined) return Number(kilobytes) / 1024;
  } catch {
    // No Linux.
  }
  return process.resourceUsage().maxRSS / 1024;
}
