import { existsSync, readFileSync } from 'node:fs';

/** What must not happen in an application, counted over all of them. */
export interface Findings {
  /** Errors that nobody handled, and warnings of Node.js. */
  readonly unhandled: number;
  /** What kept a process alive that was closed. */
  readonly openHandles: number;
  /** Names of errors, warnings and resources, each as often as it was found. */
  readonly findings: readonly string[];
}

/** Counts what `programs/findings.ts` has recorded. */
export function readFindings(file: string): Findings {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const findings = text.split('\n').filter((line) => line !== '');
  const count = (kind: string): number =>
    findings.filter((line) => line.startsWith(`${kind} `)).length;
  return {
    unhandled: count('unhandled'),
    openHandles: count('open'),
    findings,
  };
}
