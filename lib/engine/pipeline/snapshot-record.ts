import type { SnapshotMode } from '../model/snapshot.js';
import { RowRate } from './row-rate.js';
import {
  countRows,
  estimateRows,
  estimateSeconds,
  type TableProgress,
} from './snapshot-estimate.js';
import type { Tell } from '../telemetry/pipeline-events.js';
import type {
  MeteredTable,
  SnapshotMeter,
} from '../telemetry/snapshot-meter.js';
import type { SnapshotStatus } from '../telemetry/snapshot-status.js';

/** A copy, as far as this process has made it. */
interface Copy {
  readonly mode: SnapshotMode;
  readonly tables: ReadonlyMap<string, TableProgress>;
  readonly startedAt: Date;
  /** The same by `performance.now()`. */
  readonly began: number;
  readonly rate: RowRate;
  state: SnapshotStatus['state'];
  /** Milliseconds that all of it took; `null` before its end. */
  tookMs: number | null;
}

/** What is known of the snapshot that this process makes, or has made last. */
export class SnapshotRecord implements SnapshotMeter {
  #copy: Copy | null = null;

  constructor(private readonly tell: Tell) {}

  get status(): SnapshotStatus | null {
    const copy = this.#copy;
    if (copy === null) return null;
    const { mode, state, startedAt } = copy;
    const tables = [...copy.tables.values()];
    const rowsPerSecond = rateOf(copy);
    return {
      mode,
      state,
      tablesDone: tables.filter(({ done }) => done).length,
      tablesTotal: tables.length,
      tables:
        state === 'copying'
          ? tables.filter(isBeingCopied).map(({ name }) => name)
          : [],
      rows: countRows(tables),
      estimatedRows: estimateRows(tables),
      rowsPerSecond,
      secondsRemaining:
        state === 'interrupted' ? null : estimateSeconds(tables, rowsPerSecond),
      startedAt: startedAt.toISOString(),
    };
  }

  begin(
    mode: SnapshotMode,
    tables: readonly MeteredTable[],
    done: readonly string[],
    resumed = false,
  ): void {
    const now = performance.now();
    const copied = new Set(done);
    const before = this.#copy;
    const known =
      before !== null && goesOn(before, mode, copied) ? before : null;
    this.#copy = {
      mode,
      tables: new Map(
        tables.map(({ name, estimatedRows: estimated }) => [
          name,
          {
            name,
            estimated,
            rows: known?.tables.get(name)?.rows ?? 0,
            done: copied.has(name),
          },
        ]),
      ),
      startedAt: known?.startedAt ?? new Date(),
      began: known?.began ?? now,
      rate: new RowRate(now),
      state: 'copying',
      tookMs: null,
    };
    this.tell('snapshotStarted', {
      mode,
      tables: tables.length,
      done: done.length,
      resumed,
    });
  }

  rows(table: string, count: number): void {
    const progress = this.#copy?.tables.get(table);
    if (progress === undefined) return;
    progress.rows += count;
    this.#copy?.rate.note(count, performance.now());
  }

  tableDone(table: string): void {
    const progress = this.#copy?.tables.get(table);
    if (progress === undefined) return;
    progress.done = true;
    this.tell('snapshotTable', { table, rows: progress.rows });
  }

  tableAgain(table: string): void {
    const progress = this.#copy?.tables.get(table);
    if (progress === undefined) return;
    progress.rows = 0;
    this.tell('snapshotTableAgain', { table });
  }

  complete(): void {
    const copy = this.#copy;
    if (copy?.state !== 'copying') return;
    copy.state = 'complete';
    copy.tookMs = performance.now() - copy.began;
    this.tell('snapshotCompleted', {
      mode: copy.mode,
      tables: copy.tables.size,
      rows: countRows([...copy.tables.values()]),
      durationMilliseconds: copy.tookMs,
    });
  }

  interrupted(): void {
    if (this.#copy?.state === 'copying') this.#copy.state = 'interrupted';
  }
}

/** Whether what was copied counts: an initial copy always begins anew, and so does one whose slot was dropped. */
function goesOn(
  before: Copy,
  mode: SnapshotMode,
  copied: ReadonlySet<string>,
): boolean {
  return (
    mode === 'incremental' &&
    before.mode === 'incremental' &&
    before.state !== 'complete' &&
    [...before.tables.values()].every(
      ({ name, done }) => !done || copied.has(name),
    )
  );
}

function isBeingCopied({ done, rows }: TableProgress): boolean {
  return rows > 0 && !done;
}

/** While it copies that of the last seconds, then that of all of it. */
function rateOf({ state, rate, tables, tookMs }: Copy): number {
  if (state === 'interrupted') return 0;
  if (tookMs === null) return rate.over(performance.now());
  const seconds = Math.max(tookMs, 1) / 1_000;
  return Math.round(countRows([...tables.values()]) / seconds);
}
