import type { StoredCheckpoint } from '../model/checkpoint.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import { CheckpointMovedError } from './checkpoint-moved-error.js';
import { fetchRow, textIn } from './checkpoint-query.js';
import type { CheckpointQuery } from './checkpoint-query.js';
import { KnownValue } from './known-value.js';
import type { ProgressStatements } from './progress-statements.js';

/** Whose row is written, and how. */
export interface ProgressTarget {
  readonly slotName: string;
  readonly systemIdentifier: string;
  readonly timeline: number;
  readonly statements: ProgressStatements;
}

/**
 * The progress of a snapshot in the row of a sink. Rows of a snapshot, unlike a transaction, do not tell by a position of their own
 * whether they are too old: they fit the row only as it was when they were read. So a process that was cut off must not
 * write them behind the one that took over, whatever that has done since: applied a transaction, or gone on with the snapshot.
 */
export class ProgressRow {
  #commitLsn: KnownValue<Lsn | null> | null = null;
  #progress: KnownValue<string | null> | null = null;
  /** Another process has written the row. */
  #moved = false;

  /** It is read anew from now on, as at a connect: whatever it holds then is where this process begins. */
  forget(): void {
    this.#commitLsn = null;
    this.#progress = null;
    this.#moved = false;
  }

  /** The row was read; `null` when there is none. */
  read(stored: StoredCheckpoint | null): void {
    const commitLsn = stored?.commitLsn ?? null;
    const progress = stored?.progress ?? null;
    if (this.#commitLsn === null || this.#progress === null) {
      this.#commitLsn = new KnownValue<Lsn | null>(commitLsn);
      this.#progress = new KnownValue<string | null>(progress);
      return;
    }
    const known =
      this.#commitLsn.settle(commitLsn) && this.#progress.settle(progress);
    if (!known) this.#moved = true;
  }

  /** The row stands at a transaction that this process was handed: it was advanced to it, or it was there already. */
  advanced(commitLsn: Lsn): void {
    this.#commitLsn?.wrote(commitLsn);
  }

  /** What was read, or written last. */
  get progress(): string | null {
    return this.#progress?.last ?? null;
  }

  /**
   * Writes progress.
   *
   * @throws {CheckpointMovedError} when another process has written the row
   */
  async write(
    query: CheckpointQuery,
    target: ProgressTarget,
    progress: string,
  ): Promise<void> {
    const { slotName, systemIdentifier, timeline, statements } = target;
    if (this.#commitLsn === null || this.#progress === null)
      throw new Error('The checkpoint must be read before it is written.');
    if (this.#moved) throw new CheckpointMovedError(slotName);
    const commitLsn = this.#commitLsn.last;
    const before = this.#progress.before(progress);
    const begins = commitLsn === null && before === null;
    const row = await fetchRow(
      query,
      begins ? statements.begin : statements.move,
      [
        slotName,
        systemIdentifier,
        String(timeline),
        progress,
        ...(begins
          ? []
          : [before, commitLsn === null ? null : formatLsn(commitLsn)]),
      ],
    );
    if (textIn(row, 'server') === null)
      throw new CheckpointMovedError(slotName);
    this.#progress.wrote(progress);
  }
}
