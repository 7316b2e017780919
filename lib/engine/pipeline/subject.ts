import type { Sink } from '../deliver/sink.js';
import type { SinkRetries } from '../deliver/sink-retries.js';
import type { Lsn } from '../model/lsn.js';
import type { SchemaChange } from '../model/schema-change.js';
import type { Transaction } from '../model/transaction.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import type { CopiedTables } from './copied-tables.js';
import type { PipelineSchema } from './schema.js';
import type { Skipping } from './skipping.js';
import type { SinkWork } from './work.js';
import type { Advice } from '../server/advice.js';
import type { CaptureSet } from '../server/capture/capture-set.js';
import type { UnfinishedSlot } from '../server/chain-subject.js';
import type { SessionTarget } from '../server/session.js';
import type { Tell } from '../telemetry/pipeline-events.js';
import type { SnapshotMeter } from '../telemetry/snapshot-meter.js';
import type { SourceWait } from '../telemetry/source-wait.js';

/** A copy that is made before the stream. */
export interface RunningCopy {
  stop(): void;
  /** Resolves when none of its handlers runs any more, and its slot is dropped or handed over. */
  readonly ended: Promise<void>;
}

/** What a connection works for. */
export interface ConnectionSubject {
  readonly pipeline: string;
  readonly options: ResolvedOptions;
  readonly capture: CaptureSet;
  readonly sink: Sink;
  readonly target: SessionTarget;
  readonly advice: Advice;
  readonly schema: PipelineSchema;
  /** What this start passes over. */
  readonly skipping: Skipping | null;
  /** Is told what the sink works on. */
  readonly work: SinkWork;
  /** Is told which tables were copied. */
  readonly tables: CopiedTables;
  readonly retries: SinkRetries;
  /** Runs a handler so that what it calls can tell that it is inside one. */
  insideDelivery(work: () => Promise<void>): Promise<void>;
  delivered(transaction: Transaction, changes: number, ms: number): void;
  /** Tells an event that changes nothing here. */
  readonly tell: Tell;
  /** A schema change that the pipeline goes on with. */
  schemaChange(change: SchemaChange, commitLsn: Lsn): void;
  /** A position moved. */
  moved(): void;
  warning(message: string): void;
  readonly unfinishedSlot: UnfinishedSlot;
  /** Is told how a snapshot gets on. */
  readonly meter: SnapshotMeter;
  /** Rows are copied before the stream begins. */
  copying(copy: RunningCopy): void;
  /** See {@link CreationSubject}. */
  waiting(wait: SourceWait | null): void;
  withdrawing(work: Promise<void>): void;
}
