import { choose } from '../bench-options.js';

/** What may be asked to read. */
interface Candidate {
  readonly name: string;
  /** How it reads, for people. */
  readonly options: string;
  /** Makes it ready, once. @returns why it cannot run, or `null` */
  prepare?(): Promise<string | null> | string | null;
}

/** Those that were asked for and can run here; all are named. */
export async function presentReaders<R extends Candidate>(
  all: readonly R[],
  wanted: readonly string[] | null,
): Promise<R[]> {
  const found: R[] = [];
  for (const reader of choose(all, wanted)) {
    const absence = (await reader.prepare?.()) ?? null;
    if (absence === null) found.push(reader);
    console.log(
      absence === null
        ? `reader ${reader.name}: ${reader.options}`
        : `reader ${reader.name}: ABSENT, ${absence}`,
    );
  }
  return found;
}
