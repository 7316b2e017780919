import { readFileSync } from 'node:fs';

/** What a process has used so far, by the accounts of Linux. */
export interface ProcessUsage {
  /** The most memory that it had at once. */
  readonly peakBytes: number;
  /** Bytes that it wrote to files; some pages of the file system itself are counted too. */
  readonly fileBytes: number;
}

/** @throws when the process is gone */
export function processUsage(pid: number): ProcessUsage {
  const peak = count(`/proc/${pid}/status`, /^VmHWM:\s+(\d+) kB$/m);
  const written = count(`/proc/${pid}/io`, /^write_bytes: (\d+)$/m);
  return { peakBytes: peak * 1024, fileBytes: written };
}

function count(file: string, pattern: RegExp): number {
  const [, digits] = pattern.exec(readFileSync(file, 'utf8')) ?? [];
  if (digits === undefined) throw new Error(`${file} does not say it.`);
  return Number(digits);
}
