import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BatchReason } from '../model/batch-reason.js';
import { deferred } from '../model/deferred.js';
import type { Lsn } from '../model/lsn.js';
import { Fifo } from './fifo.js';
import { type BatchLimits, OpenBatch } from './open-batch.js';
import {
  type Arrival,
  bytesHeld,
  type ChunkWork,
  type EndWork,
  type PassWork,
  type SingleWork,
  type TransactionWork,
  type Work,
} from './work.js';

/** What a delivery asks of its surroundings. */
export interface DeliveryPorts {
  /** Does one work by itself; resolves with its end when it is durable. */
  deliver(work: SingleWork): Promise<Lsn>;
  /** Hands over rows of a snapshot, and stores their progress. */
  copy(work: ChunkWork): Promise<void>;
  /** That is done. */
  copied(): void;
  /** Does what is due for a transaction when it joins the open batch. */
  gather(work: TransactionWork): Promise<void>;
  /** Makes the transactions of a batch durable; at least one. */
  flush(
    transactions: readonly TransactionWork[],
    reason: BatchReason,
  ): Promise<void>;
  /** The batch before a transaction that could not join it was not made durable either. */
  batchLost(error: unknown): void;
  /** Stores positions that no transaction carries. */
  store(): Promise<void>;
  /** Nothing more arrives before something of what was pushed is durable. */
  blocked(): boolean;
  /** The oldest work is durable, up to its end; `empty` when there was nothing to make durable. */
  settled(end: Lsn, empty: boolean): void;
  /** Nothing more is delivered. */
  failed(error: unknown): void;
}

/** What becomes of an open batch when the delivery stops: it is made durable, or it comes again. */
export type OpenBatchFate = 'flush' | 'discard';

/** Handlers that wait for nothing would otherwise keep the timers of the process from running. */
const LONGEST_TURN_MS = 20;

/**
 * Does one thing at a time: applies transactions in commit order, each by itself or several in a batch, and between them
 * stores positions. The two never overlap, since both write the same checkpoint row.
 */
export class SerialDelivery {
  readonly #queue = new Fifo<Work>();
  /** `null` when each transaction is durable by itself. */
  readonly #batch: OpenBatch | null;
  readonly #maxDelayMs: number;
  #delay: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  #storeWanted = false;
  /** Why somebody wants the open batch to be closed. */
  #closing: BatchReason | null = null;
  #stopped = false;
  #failed = false;
  #ending: Promise<void> | null = null;
  /** Of all but those that arrive. */
  #bytes = 0;
  /** Those in the queue, and the one that is read. */
  readonly #arrivals = new Set<Arrival>();

  constructor(
    private readonly ports: DeliveryPorts,
    limits: BatchLimits | null = null,
  ) {
    this.#batch = limits === null ? null : new OpenBatch(limits);
    this.#maxDelayMs = limits?.maxDelayMs ?? 0;
  }

  /** Payload bytes of what is not durable yet, and an allowance for each transaction. */
  get bytes(): number {
    return this.#bytes + this.arrivingBytes;
  }

  /** Those among them of transactions that are read while they arrive. */
  get arrivingBytes(): number {
    // Asked for every frame.
    if (this.#arrivals.size === 0) return 0;
    let bytes = 0;
    for (const arrival of this.#arrivals) bytes += arrival.bytes;
    return bytes;
  }

  push(work: Work): void {
    if (this.#stopped) return;
    if (work.kind === 'arriving') this.#arrivals.add(work.arrival);
    this.#bytes += bytesHeld(work);
    this.#queue.push(work);
    this.#wake();
  }

  /** Makes the open batch durable as soon as nothing runs. */
  closeBatch(reason: BatchReason): void {
    this.#closing ??= reason;
    this.#wake();
  }

  /** Nothing more arrives for now: the open batch must not wait for it. */
  held(): void {
    this.#wake();
  }

  /** Stores positions as soon as nothing runs. */
  requestStore(): void {
    this.#storeWanted = true;
    this.#wake();
  }

  /** Begins nothing new; resolves when what runs has settled, whatever its outcome. The first call decides about the open batch. */
  stop(open: OpenBatchFate): Promise<void> {
    this.#stopped = true;
    this.#queue.clear();
    this.#closeDelay();
    this.#ending ??= this.#end(open);
    return this.#ending;
  }

  async #end(open: OpenBatchFate): Promise<void> {
    await this.#running;
    if (open === 'discard' || this.#failed) return;
    await this.#guarded(() => this.#flush('stop'));
  }

  #wake(): void {
    if (this.#running !== null || this.#stopped) return;
    if (this.#queue.length === 0 && !this.#storeWanted && this.#due === null)
      return;
    // Set before anything runs: a handler may stop this delivery before it returns its promise.
    const run = deferred<void>();
    this.#running = run.promise;
    void this.#guarded(() => this.#drain()).finally(() => {
      this.#running = null;
      run.resolve();
      this.#wake();
    });
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#stopped = true;
      this.#failed = true;
      this.#queue.clear();
      this.#closeDelay();
      this.ports.failed(error);
    }
  }

  async #drain(): Promise<void> {
    let turnBegan = performance.now();
    while (!this.#stopped) {
      if (performance.now() - turnBegan > LONGEST_TURN_MS) {
        await nextTurn();
        turnBegan = performance.now();
        continue;
      }
      if (this.#storeWanted) {
        this.#storeWanted = false;
        await this.ports.store();
        continue;
      }
      const due = this.#due;
      if (due !== null) {
        await this.#flush(due);
        continue;
      }
      const work = this.#queue.shift();
      if (work === undefined) return;
      // No await for what needs none: each costs as much as a small row.
      if (work.kind === 'pass') this.#pass(work);
      else if (work.kind === 'chunk') await this.#copy(work);
      else if (this.#batch === null || work.kind !== 'transaction')
        await this.#alone(work);
      else await this.#gather(work, this.#batch);
    }
  }

  #pass(work: PassWork): void {
    if (this.#batch === null || this.#batch.empty) this.#settle(work, work.end);
    else this.#batch.fold(work);
  }

  /** Why the open batch is closed before anything else is begun; `null` when it may stay open. */
  get #due(): BatchReason | null {
    if (this.#batch === null) return null;
    const { full, empty } = this.#batch;
    if (full !== null) return full;
    if (this.#closing !== null) return this.#closing;
    const stuck = !empty && this.#queue.length === 0 && this.ports.blocked();
    return stuck ? 'bytes' : null;
  }

  async #copy(work: ChunkWork): Promise<void> {
    if (this.#batch?.empty === false) await this.#flush('snapshot');
    await this.ports.copy(work);
    this.#bytes -= bytesHeld(work);
    this.ports.copied();
  }

  async #alone(work: SingleWork | EndWork): Promise<void> {
    if (this.#batch?.empty === false) await this.#flush(boundary(work));
    if (work.kind === 'end') throw work.fault;
    this.#settle(work, await this.ports.deliver(work));
  }

  async #gather(work: TransactionWork, batch: OpenBatch): Promise<void> {
    try {
      await this.ports.gather(work);
    } catch (error) {
      await this.#flush('failure').catch((lost: unknown) =>
        this.ports.batchLost(lost),
      );
      throw error;
    }
    if (batch.empty && !this.#stopped) this.#openDelay();
    batch.add(work);
  }

  async #flush(reason: BatchReason): Promise<void> {
    this.#closeDelay();
    if (this.#batch === null || this.#batch.empty) return;
    const { works, transactions } = this.#batch.take();
    await this.ports.flush(transactions, reason);
    for (const work of works) this.#settle(work, work.end);
  }

  #openDelay(): void {
    this.#delay = setTimeout(() => this.closeBatch('delay'), this.#maxDelayMs);
  }

  #closeDelay(): void {
    if (this.#delay !== null) clearTimeout(this.#delay);
    this.#delay = null;
    this.#closing = null;
  }

  #settle(work: SingleWork | PassWork, end: Lsn): void {
    if (work.kind === 'arriving') this.#arrivals.delete(work.arrival);
    this.#bytes -= bytesHeld(work);
    // A message leaves no trace in the checkpoint, so what records transactions has nothing to confirm.
    const empty = work.kind === 'pass' ? work.empty : work.kind === 'message';
    this.ports.settled(end, empty);
  }
}

/** What closes a batch that this does not join. */
function boundary({ kind }: SingleWork | EndWork): BatchReason {
  if (kind === 'message') return kind;
  return kind === 'end' ? 'stop' : 'large';
}
