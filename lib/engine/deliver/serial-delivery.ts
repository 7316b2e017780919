import { setImmediate as nextTurn } from 'node:timers/promises';
import { deferred } from '../model/deferred.js';
import type { Lsn } from '../model/lsn.js';
import type { Transaction } from '../model/transaction.js';
import { Fifo } from './fifo.js';

/** A transaction for the sink. */
export interface TransactionWork {
  readonly kind: 'transaction';
  readonly transaction: Transaction;
  /** Number of its changes. */
  readonly changes: number;
  /** Payload bytes that it holds. */
  readonly bytes: number;
  readonly end: Lsn;
}

/** What comes out of assembly, in commit order. */
export type Work =
  | TransactionWork
  /** Nothing to do for the sink: applied before, or without any change. It keeps its place in the order. */
  | { readonly kind: 'pass'; readonly end: Lsn };

/** What a delivery asks of its surroundings. */
export interface DeliveryPorts {
  /** Applies one transaction; resolves when it is durable. */
  deliver(work: TransactionWork): Promise<void>;
  /** Stores positions that no transaction carries. */
  store(): Promise<void>;
  /** A transaction is about to be handed over. */
  started(work: Work): void;
  /** A work is durable. */
  settled(work: Work): void;
  /** Nothing more is delivered. */
  failed(error: unknown): void;
}

/** What a queued transaction costs beside its payload: many tiny ones must not outgrow the limit in bytes. */
const TRANSACTION_ALLOWANCE_BYTES = 512;
/** Handlers that wait for nothing would otherwise keep the timers of the process from running. */
const LONGEST_TURN_MS = 20;

/**
 * Does one thing at a time: applies transactions in commit order and, between two of them, stores positions. The two
 * never overlap, since both write the same checkpoint row.
 */
export class SerialDelivery {
  readonly #queue = new Fifo<Work>();
  #running: Promise<void> | null = null;
  #storeWanted = false;
  #stopped = false;
  #bytes = 0;

  constructor(private readonly ports: DeliveryPorts) {}

  /** Payload bytes of transactions that are not durable yet, and an allowance for each of them. */
  get bytes(): number {
    return this.#bytes;
  }

  push(work: Work): void {
    if (this.#stopped) return;
    this.#bytes += held(work);
    this.#queue.push(work);
    this.#wake();
  }

  /** Stores positions as soon as nothing runs. */
  requestStore(): void {
    this.#storeWanted = true;
    this.#wake();
  }

  /** Begins nothing new; resolves when what runs has settled, whatever its outcome. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#queue.clear();
    await this.#running;
  }

  #wake(): void {
    if (this.#running !== null || this.#stopped) return;
    if (this.#queue.length === 0 && !this.#storeWanted) return;
    // Set before anything runs: a handler may stop this delivery before it returns its promise.
    const run = deferred<void>();
    this.#running = run.promise;
    void this.#run().finally(() => run.resolve());
  }

  async #run(): Promise<void> {
    try {
      await this.#drain();
    } catch (error) {
      this.#stopped = true;
      this.#queue.clear();
      this.ports.failed(error);
    } finally {
      this.#running = null;
      this.#wake();
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
      const work = this.#queue.shift();
      if (work === undefined) return;
      await this.#perform(work);
    }
  }

  async #perform(work: Work): Promise<void> {
    if (work.kind === 'transaction') {
      this.ports.started(work);
      await this.ports.deliver(work);
    }
    this.#bytes -= held(work);
    this.ports.settled(work);
  }
}

function held(work: Work): number {
  return work.kind === 'transaction'
    ? work.bytes + TRANSACTION_ALLOWANCE_BYTES
    : 0;
}
