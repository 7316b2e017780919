import { SinkRetries } from '../deliver/sink-retries.js';
import type { Halt } from '../model/halt.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import { Advice } from '../server/advice.js';
import type { UnfinishedSlot } from '../server/chain-subject.js';
import type { PipelineConnection } from './connection.js';
import type { HandlerScope } from './handlers.js';
import { type LoopEnd, PipelineLoop } from './loop.js';
import type { PipelineRecord } from './record.js';
import type { PipelineSchema } from './schema.js';
import type { SinkMaker } from './sink-maker.js';
import type { Skipping } from './skipping.js';
import type { SourceAccess } from './source-access.js';
import type { SinkWork } from './work.js';

/** What a start is made of: the order that it follows, and what its pipeline keeps from one start to the next. */
export interface RunSubject {
  readonly pipeline: string;
  readonly options: ResolvedOptions;
  readonly source: SourceAccess;
  readonly makeSink: SinkMaker;
  /** What this start passes over. */
  readonly skipping: Skipping | null;
  readonly record: PipelineRecord;
  readonly schema: PipelineSchema;
  readonly work: SinkWork;
  readonly handlers: HandlerScope;
  readonly unfinishedSlot: UnfinishedSlot;
  streaming(): void;
  /** A position moved. */
  moved(): void;
}

/** One start of a pipeline, until it is stopped or halts: its loop of connections, and what it has open beside them. */
export class PipelineRun {
  readonly skipping: Skipping | null;
  readonly #loop: PipelineLoop;
  readonly #close: () => Promise<void>;

  /** @param unsettled - what still runs of earlier starts, see {@link PipelineRun.settle} */
  constructor(subject: RunSubject, unsettled: Promise<Halt | null>) {
    const { pipeline, options, skipping, record, schema, work } = subject;
    const abort = new AbortController();
    const sink = subject.makeSink(abort.signal);
    const { checkpoint } = sink;
    this.skipping = skipping;
    this.#close = async () => {
      abort.abort();
      if (checkpoint.kind === 'store') await checkpoint.keeper.close();
    };
    this.#loop = new PipelineLoop(
      {
        pipeline,
        options,
        sink,
        target: {
          ...subject.source.target(abort.signal),
          waiting: (wait) => record.waits(wait),
        },
        advice: new Advice(options, sink.tables ?? [], (message) =>
          record.warning(message),
        ),
        schema,
        skipping,
        work,
        tables: record.tables,
        retries: new SinkRetries(options.sinkRetry),
        unfinishedSlot: subject.unfinishedSlot,
        meter: record.snapshot,
        insideDelivery: (call) => subject.handlers.run(call),
        delivered: ({ commitLsn }, changes, ms) =>
          record.delivered(commitLsn, changes, ms),
        tell: (event, payload) => record.events.emit(event, payload),
        schemaChange: (change, commitLsn) =>
          record.schemaChange(change, commitLsn),
        moved: () => subject.moved(),
        warning: (message) => record.warning(message),
        waiting: (wait) => record.waits(wait),
      },
      {
        snapshotting: () => record.snapshotting(),
        streaming: () => subject.streaming(),
        interrupted: (reason) => record.interrupted(reason),
        reconnecting: (reason, attempt, delayMs) =>
          record.reconnecting(reason, attempt, delayMs),
        standby: (reason, delayMs) => record.standby(reason, delayMs),
      },
      abort,
      unsettled,
    );
  }

  /** The one that streams; `null` between two. */
  get connection(): PipelineConnection | null {
    return this.#loop.connection;
  }

  /** Runs until it is stopped or halts. Never rejects. */
  run(): Promise<LoopEnd> {
    return this.#loop.run();
  }

  /** Ends it, within `timeoutMs` as far as that is up to the sink. Never rejects. */
  stop(timeoutMs: number): Promise<LoopEnd> {
    return this.#loop.stop(timeoutMs);
  }

  /** Resolves when its last delivery has settled, which may outlive it, with a halt that nobody was told of yet. Never rejects. */
  settle(): Promise<Halt | null> {
    return this.#loop.unsettled;
  }

  /** Closes what it has open beside its connection, whatever still runs. Never rejects. */
  async close(): Promise<void> {
    await this.#close();
  }
}
