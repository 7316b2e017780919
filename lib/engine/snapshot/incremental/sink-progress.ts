import type { Lsn } from '../../model/lsn.js';
import { encodeProgress, encodeTables } from '../../model/progress-token.js';
import {
  type SnapshotProgress,
  tableKey,
  type TableProgress,
} from '../../model/snapshot-progress.js';

/** By what a progress is another than the one before. */
export interface ProgressStep {
  readonly complete: boolean;
  readonly uncertain: Lsn | null;
  /** Tables that come last in the list from now on, wherever they were. */
  readonly added: readonly TableProgress[];
  /** Tables whose state is another. */
  readonly changed: readonly TableProgress[];
}

/**
 * The progress that the sink stores with the call that it is given now. The plan is ahead of it by what is queued: a call that waits holds by
 * what the progress changes, and not all of it.
 */
export class SinkProgress {
  readonly #floor: Lsn;
  readonly #tables: Map<string, TableProgress>;
  /** Which tables there are, as text; `null` when it was not written yet. */
  #list: string | null = null;

  constructor({ floor, tables }: SnapshotProgress) {
    this.#floor = floor;
    this.#tables = new Map(tables.map((entry) => [tableKey(entry), entry]));
  }

  /** What is stored with the next call. Each step is taken once, in the order of the calls. */
  take({ complete, uncertain, added, changed }: ProgressStep): string {
    for (const entry of added) {
      this.#tables.delete(tableKey(entry));
      this.#list = null;
    }
    for (const entry of [...added, ...changed])
      this.#tables.set(tableKey(entry), entry);
    const progress = {
      floor: this.#floor,
      complete,
      uncertain,
      tables: [...this.#tables.values()],
    };
    this.#list ??= encodeTables(progress.tables);
    return encodeProgress(progress, this.#list);
  }
}

/** About how many bytes are held of a step: rows that lack columns are many, all else is short. */
export function bytesOfStep({ changed }: ProgressStep): number {
  let bytes = 0;
  for (const entry of changed) {
    if (entry.state !== 'reading') continue;
    for (const key of entry.lacking?.keys ?? [])
      for (const value of key) bytes += value.length + ALLOWANCE_BYTES;
  }
  return bytes + ALLOWANCE_BYTES;
}

/** What a value, or a step, counts beside its text. */
const ALLOWANCE_BYTES = 64;
