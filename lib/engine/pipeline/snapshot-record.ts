import type { SnapshotMode } from '../model/snapshot.js';
import type { Tell } from '../telemetry/pipeline-events.js';
import type {
  MeteredTable,
  SnapshotMeter,
} from '../telemetry/snapshot-meter.js';
import type { SnapshotStatus } from '../telemetry/snapshot-status.js';

/** What is known of the snapshot that this process makes, or has made last. */
export class SnapshotRecord implements SnapshotMeter {
  constructor(private readonly tell: Tell) {}

  get status(): SnapshotStatus | null {
    return null;
  }

  begin(
    mode: SnapshotMode,
    tables: readonly MeteredTable[],
    done: readonly string[],
  ): void {
    this.tell('snapshotStarted', {
      mode,
      tables: tables.length,
      done: done.length,
    });
  }

  rows(_table: string, _count: number): void {}

  tableDone(table: string): void {
    this.tell('snapshotTable', { table, rows: 0 });
  }

  tableAgain(table: string): void {
    this.tell('snapshotTableAgain', { table });
  }

  complete(): void {}

  interrupted(): void {}
}
