import { PublicationSet } from '../../lib/engine/server/capture/publication-set.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { PgoutputDecoder } from '../../lib/engine/decode/pgoutput/pgoutput-decoder.js';
import type { ChunkWork, SnapshotCall } from '../../lib/engine/deliver/work.js';
import { formatLsn, type Lsn, parseLsn } from '../../lib/engine/model/lsn.js';
import type { SessionTarget } from '../../lib/engine/server/session.js';
import { Backfill } from '../../lib/engine/snapshot/incremental/backfill.js';
import {
  decodeProgress,
  encodeProgress,
} from '../../lib/engine/model/progress-token.js';
import type { RowMessage } from '../../lib/engine/snapshot/incremental/stream-watch.js';
import { ReplicationSession } from '../../lib/engine/source/replication-session.js';
import {
  frameKind,
  framePosition,
  writeStatus,
  XLOG_DATA_HEADER,
} from '../../lib/engine/source/wire.js';
import type { SnapshotMeter } from '../../lib/engine/telemetry/snapshot-meter.js';
import type { SourceWait } from '../../lib/engine/telemetry/source-wait.js';
import { TypeTable } from '../../lib/engine/values/type-table.js';
import { MemoryMirror } from './memory-mirror.js';
import { present } from './present.js';
import type { TestDatabase } from './test-database.js';
import { waitFor } from './wait-for.js';

/** What a sink was called with. */
export type ChunkCall = SnapshotCall;

/** What differs from a backfill with default options. */
export interface BackfillingOptions {
  readonly chunkRows?: number;
  readonly maxPendingChunks?: number;
  /** Runs before each work is applied. */
  readonly beforeApply?: (call: ChunkCall | null) => Promise<void>;
}

/** What lasts when a process ends: a sink with its checkpoint, and the slot. */
export class Sink {
  readonly mirror: MemoryMirror;
  /** Every call of the snapshot method, in order. */
  readonly calls: ChunkCall[] = [];
  progress: string | null = null;
  appliedThrough: Lsn | null = null;

  private constructor(
    readonly source: TestDatabase,
    readonly slotName: string,
    readonly floor: Lsn,
    unkeyed: readonly string[],
  ) {
    this.mirror = new MemoryMirror(unkeyed);
  }

  /**
   * Creates the slot.
   *
   * @param unkeyed - tables that may have equal rows
   */
  static async create(
    source: TestDatabase,
    unkeyed: readonly string[] = [],
  ): Promise<Sink> {
    const slotName = `slot_${source.name}`;
    const [row] = await source.query<{ lsn: string }>(
      "select lsn from pg_create_logical_replication_slot($1, 'pgoutput')",
      [slotName],
    );
    return new Sink(
      source,
      slotName,
      present(parseLsn(present(row).lsn)),
      unkeyed,
    );
  }

  get isComplete(): boolean {
    return this.progress !== null && decodeProgress(this.progress).complete;
  }

  /** Calls with rows or without, of one table. */
  callsOf(relation: string): readonly ChunkCall[] {
    return this.calls.filter(({ context }) => context.relation === relation);
  }
}

type Queued =
  | {
      readonly kind: 'changes';
      readonly commitLsn: Lsn;
      readonly end: Lsn;
      readonly changes: readonly RowMessage[];
    }
  | { readonly kind: 'chunk'; readonly work: ChunkWork };

/** One connection: a stream and a backfill that deliver to a sink, one work after the other. */
export class Backfilling {
  /** Why it ended by itself. */
  failure: unknown = null;
  readonly meter: string[] = [];
  /** What it waits for. */
  waiting: SourceWait | null = null;
  /** Tables that are copied or are going to be. */
  listed: readonly string[] = [];
  #session: ReplicationSession | null = null;
  #backfill: Backfill | null = null;
  readonly #queue: Queued[] = [];
  readonly #abort = new AbortController();
  #stopped = false;
  #applying: Promise<void> = Promise.resolve();
  #received: Lsn = 0n;
  #durable: Lsn;
  #changes: RowMessage[] = [];

  private constructor(
    readonly sink: Sink,
    private readonly options: BackfillingOptions,
  ) {
    this.#durable = sink.appliedThrough ?? sink.floor;
  }

  static async start(
    sink: Sink,
    options: BackfillingOptions = {},
  ): Promise<Backfilling> {
    const running = new Backfilling(sink, options);
    onTestFinished(() => running.stop());
    await running.#start();
    return running;
  }

  get backfill(): Backfill {
    return present(this.#backfill);
  }

  async complete(timeout = 25_000): Promise<void> {
    await waitFor(
      () => {
        this.#requireWhole();
        return this.sink.isComplete;
      },
      { timeout, message: 'the copy to be complete' },
    );
  }

  /** Waits until what the source has committed was received. */
  async received(): Promise<void> {
    const { source } = this.sink;
    const [row] = await source.query<{ lsn: string }>(
      "select pg_logical_emit_message(true, 'end', '')::text as lsn",
    );
    const lsn = present(parseLsn(present(row).lsn));
    await waitFor(
      () => {
        this.#requireWhole();
        return this.#received > lsn;
      },
      { message: 'the stream to come' },
    );
  }

  /** Waits until the sink has applied what the source has committed. */
  async caughtUp(): Promise<void> {
    await this.received();
    await waitFor(
      () => {
        this.#requireWhole();
        return this.#queue.length === 0;
      },
      { message: 'the sink to catch up' },
    );
  }

  /** Ends as a process does that is killed: what is queued is lost. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#queue.length = 0;
    await this.#backfill?.stop();
    this.#abort.abort();
    this.#session?.destroy();
    await this.#applying;
  }

  async #start(): Promise<void> {
    const { sink, options } = this;
    const { source, slotName } = sink;
    const target: SessionTarget = {
      connection: source.url,
      applicationName: 'backfilling',
      signal: this.#abort.signal,
    };
    const session = await ReplicationSession.open(target);
    this.#session = session;
    const backfill = await Backfill.prepare({
      pipeline: 'test',
      slotName,
      target,
      capture: new PublicationSet(['p']),
      types: 'text',
      chunkRows: options.chunkRows ?? 1_000,
      maxPendingChunks: options.maxPendingChunks ?? 4,
      floor: sink.floor,
      progress: sink.progress === null ? null : decodeProgress(sink.progress),
      appliedThrough: sink.appliedThrough,
      streamedFrom: sink.floor,
      fresh: sink.appliedThrough === null && sink.progress === null,
      meter: this.#meter(),
      deliver: (work) => this.#push({ kind: 'chunk', work }),
      askPosition: () => this.#status(true),
      listed: (names) => {
        this.listed = names;
      },
      waiting: (wait) => {
        this.waiting = wait;
      },
      failed: (error) => {
        this.failure = error;
      },
    });
    this.#backfill = backfill;
    const decoder = new PgoutputDecoder(new TypeTable('text'));
    await session.startStreaming(
      `START_REPLICATION SLOT ${slotName} LOGICAL ${formatLsn(sink.floor)} (proto_version '1', publication_names 'p')`,
      {
        frame: (bytes, start, end) => this.#frame(decoder, bytes, start, end),
        notice: () => {},
      },
      () => {},
    );
    session.ended.catch((error: unknown) => {
      if (!this.#stopped) this.failure ??= error;
    });
    backfill.start();
    this.#applying = this.#apply();
  }

  #frame(
    decoder: PgoutputDecoder,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    if (this.#stopped) return;
    const { watch } = this.backfill;
    const position = framePosition(bytes, start);
    if (frameKind(bytes, start, end) === 'keepalive') {
      if (position > this.#received) this.#received = position;
      watch.keepalive(position);
      return;
    }
    const message = decoder.decode(bytes, start + XLOG_DATA_HEADER, end);
    switch (message.kind) {
      case 'begin':
        this.#changes = [];
        return watch.begin(message);
      case 'insert':
      case 'update':
      case 'delete':
      case 'truncate':
        this.#changes.push(message);
        return watch.change(message);
      case 'commit': {
        watch.ended();
        const { commitLsn, endLsn } = message;
        this.#push({
          kind: 'changes',
          commitLsn,
          end: endLsn,
          changes: this.#changes,
        });
        if (endLsn > this.#received) this.#received = endLsn;
        return watch.commit(message);
      }
      case 'fault':
        throw new Error(message.detail);
      default:
    }
  }

  #push(queued: Queued): void {
    if (!this.#stopped) this.#queue.push(queued);
  }

  async #apply(): Promise<void> {
    while (!this.#stopped) {
      const next = this.#queue[0];
      if (next === undefined) {
        await sleep(1);
        continue;
      }
      const call = next.kind === 'chunk' ? next.work.begin() : null;
      try {
        await this.options.beforeApply?.(call);
      } catch (error) {
        this.failure = error;
        return;
      }
      if (this.#stopped) return;
      if (next.kind === 'changes') this.#applyChanges(next);
      else if (call !== null) this.#applyChunk(call, next.work);
      this.#queue.shift();
    }
  }

  #applyChanges({
    commitLsn,
    end,
    changes,
  }: Extract<Queued, { kind: 'changes' }>): void {
    const { sink } = this;
    if (sink.appliedThrough !== null && commitLsn <= sink.appliedThrough)
      return;
    for (const change of changes) sink.mirror.change(change);
    sink.appliedThrough = commitLsn;
    this.#durable = end;
    this.#status(false);
  }

  #requireWhole(): void {
    if (this.failure === null) return;
    if (this.failure instanceof Error) throw this.failure;
    throw new Error('The backfill has failed.');
  }

  #applyChunk(call: ChunkCall, work: ChunkWork): void {
    const { sink } = this;
    const { rows, context } = call;
    if (context.firstForTable) sink.mirror.clear(context.relation);
    for (const row of rows) sink.mirror.fill(row);
    const progress = present(context.progress);
    // One text for one progress.
    if (encodeProgress(decodeProgress(progress)) !== progress)
      throw new Error('The progress cannot be read.');
    sink.progress = progress;
    sink.calls.push(call);
    work.taken();
  }

  #status(replyAsked: boolean): void {
    if (this.#stopped) return;
    this.#session?.send(
      writeStatus(
        {
          write: this.#received,
          flush: this.#durable,
          apply: this.#durable,
        },
        Date.now(),
        replyAsked,
      ),
    );
  }

  #meter(): SnapshotMeter {
    const tell = (text: string): void => void this.meter.push(text);
    return {
      begin: (_mode, tables, done) =>
        tell(`begin ${tables.length - done.length} of ${tables.length}`),
      rows: () => {},
      tableDone: (table) => tell(`done ${table}`),
      tableAgain: (table) => tell(`again ${table}`),
      complete: () => tell('complete'),
      interrupted: () => tell('interrupted'),
    };
  }
}
