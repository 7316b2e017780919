import type { Halt } from '../model/halt.js';
import type { Lsn } from '../model/lsn.js';
import type { SchemaChange } from '../model/schema-change.js';
import { CopiedTables } from './copied-tables.js';
import { PipelineProgress } from './progress.js';
import { SnapshotRecord } from './snapshot-record.js';
import { EventHub } from '../telemetry/pipeline-events.js';
import type { PipelineState } from '../telemetry/pipeline-state.js';
import {
  describeWait,
  isSameWait,
  type SourceWait,
} from '../telemetry/source-wait.js';

/** The state of a pipeline and what it has done, and the events by which both are told. */
export class PipelineRecord {
  readonly events = new EventHub();
  readonly progress = new PipelineProgress();
  readonly snapshot = new SnapshotRecord((event, payload) =>
    this.events.emit(event, payload),
  );
  readonly tables = new CopiedTables();
  #state: PipelineState = 'idle';
  #reason: string | null = null;
  #since = new Date();
  #halt: Halt | null = null;
  #wait: SourceWait | null = null;

  get state(): PipelineState {
    return this.#state;
  }

  get reason(): string | null {
    return this.#reason;
  }

  /** When the state was entered. */
  get since(): Date {
    return this.#since;
  }

  get halt(): Halt | null {
    return this.#halt;
  }

  /** What is waited for on the source. */
  get wait(): SourceWait | null {
    return this.#wait;
  }

  connecting(): void {
    this.#halt = null;
    this.#enter('connecting', null);
  }

  snapshotting(): void {
    this.#enter('snapshotting', null);
  }

  streaming(): void {
    this.progress.streams();
    this.#enter('streaming', null);
  }

  /** The connection is lost, while a handler still runs. */
  interrupted(reason: string): void {
    this.#enter('reconnecting', reason);
  }

  reconnecting(reason: string, attempt: number, delayMs: number): void {
    this.progress.failed(attempt, delayMs);
    this.#enter(
      this.#state === 'connecting' ? 'connecting' : 'reconnecting',
      reason,
    );
    this.events.emit('reconnect', {
      reason,
      attempt,
      delayMilliseconds: delayMs,
    });
  }

  standby(reason: string, delayMs: number): void {
    this.progress.failed(0, delayMs);
    this.#enter('standby', reason);
  }

  /** Something waits for others on the source, or does not any more. */
  waits(wait: SourceWait | null): void {
    const before = this.#wait;
    this.#wait = wait;
    if (wait !== null) {
      this.#reason = describeWait(wait);
      if (!isSameWait(wait, before)) this.warning(this.#reason);
    } else if (before !== null && this.#reason === describeWait(before))
      this.#reason = null;
  }

  delivered(commitLsn: Lsn, changes: number, ms: number): void {
    this.progress.delivered(changes);
    this.events.emit('delivered', {
      commitLsn,
      changes,
      durationMilliseconds: ms,
    });
  }

  schemaChange(change: SchemaChange, commitLsn: Lsn): void {
    this.events.emit('schemaChange', { change, commitLsn });
  }

  warning(message: string): void {
    this.events.emit('warning', { message });
  }

  draining(): void {
    this.#enter('draining', null);
  }

  stopped(): void {
    this.progress.settled();
    this.#enter('stopped', null);
  }

  halted(halt: Halt): void {
    this.progress.settled();
    this.#halt = halt;
    this.#enter('halted', `${halt.code}: ${halt.detail}`);
    this.events.emit('halt', { halt });
  }

  #enter(to: PipelineState, reason: string | null): void {
    const from = this.#state;
    this.#reason = reason;
    if (
      from === to ||
      (from === 'draining' && to !== 'stopped' && to !== 'halted')
    )
      return;
    // What waited was a part of what has ended, or says so again.
    this.#wait = null;
    this.#state = to;
    this.#since = new Date();
    this.events.emit('state', { from, to, reason });
  }
}
