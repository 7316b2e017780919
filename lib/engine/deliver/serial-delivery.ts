import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ConnectionFault } from '../model/connection-fault.js';
import { deferred } from '../model/deferred.js';
import type { Lsn } from '../model/lsn.js';
import type { Relation } from '../model/relation.js';
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
  /** New shapes of tables in it. */
  readonly shapes: readonly Relation[];
}

/** A transaction that is read while it arrives. */
export interface Arrival {
  /** Payload bytes that it holds now. */
  readonly bytes: number;
  /** Number of changes that have arrived. */
  readonly count: number;
  /** When its reader last asked, by `performance.now()`: now while it waits for what the server has not sent. */
  readonly askedAt: number;
  /** Its end has arrived. */
  readonly complete: boolean;
  /** Resolves with its end; rejects when that will not arrive. */
  readonly ended: Promise<Lsn>;
  /** Why its end will not arrive; `null` as long as it may. */
  readonly fault: ConnectionFault | null;
  /** What the handler was told instead of the rest; `null` when it was not told so. */
  readonly broken: ConnectionFault | null;
  /** The handler has settled: what it did not read is not kept. */
  settle(): void;
}

export interface ArrivingWork {
  readonly kind: 'arriving';
  readonly transaction: Transaction;
  readonly arrival: Arrival;
  /** New shapes of tables in it; more follow until its end. */
  readonly shapes: readonly Relation[];
}

/** The connection has to end when everything before is durable. */
export interface EndWork {
  readonly kind: 'end';
  readonly fault: ConnectionFault;
}

/** What comes out of assembly, in commit order. */
export type Work =
  | TransactionWork
  | ArrivingWork
  /** Nothing to do for the sink: applied before, or without any change. It keeps its place in the order. */
  | {
      readonly kind: 'pass';
      readonly end: Lsn;
      /** There never was anything to apply. */
      readonly empty: boolean;
    }
  | EndWork;

/** What a delivery asks of its surroundings. */
export interface DeliveryPorts {
  /** Applies one transaction; resolves with its end when it is durable. */
  deliver(work: TransactionWork | ArrivingWork): Promise<Lsn>;
  /** Stores positions that no transaction carries. */
  store(): Promise<void>;
  /** The oldest work is durable, up to its end; `empty` when there was nothing to make durable. */
  settled(end: Lsn, empty: boolean): void;
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
  /** Of whole transactions. */
  #bytes = 0;
  /** Those in the queue, and the one that is read. */
  readonly #arrivals = new Set<Arrival>();

  constructor(private readonly ports: DeliveryPorts) {}

  /** Payload bytes of transactions that are not durable yet, and an allowance for each of them. */
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
      if (work.kind === 'end') throw work.fault;
      // No await for what needs none: each costs as much as a small row.
      this.#settle(
        work,
        work.kind === 'pass' ? work.end : await this.ports.deliver(work),
      );
    }
  }

  #settle(work: Exclude<Work, EndWork>, end: Lsn): void {
    if (work.kind === 'arriving') this.#arrivals.delete(work.arrival);
    this.#bytes -= held(work);
    this.ports.settled(end, work.kind === 'pass' && work.empty);
  }
}

/**
 * What a work counts from its arrival until it is durable. One that is read while it arrives counts what it holds, and
 * nothing else: while it holds nothing, its reader waits for the socket.
 */
function held(work: Work): number {
  return work.kind === 'transaction'
    ? work.bytes + TRANSACTION_ALLOWANCE_BYTES
    : 0;
}
