import type { Change } from '../model/change.js';
import { ChangesError } from '../model/changes-error.js';
import type { ConnectionFault } from '../model/connection-fault.js';
import { deferred, type Deferred } from '../model/deferred.js';
import { LoopTurn } from '../model/loop-turn.js';
import type { Lsn } from '../model/lsn.js';
import { ChangeQueue } from './change-queue.js';

type Next = IteratorResult<Change, undefined>;

/** What an arrival tells. */
export interface ArrivalPorts {
  /** It holds less than before. */
  drained(): void;
  /** The reader has read it to its end. */
  readToEnd(endLsn: Lsn): void;
}

/**
 * A transaction that a sink reads while it arrives: the assembler writes, the handler reads, once. It holds what was not
 * read yet; to keep that small is the work of whoever reads the socket.
 */
export class Arrival {
  /** What the handler is given. */
  readonly changes: AsyncIterable<Change> = {
    [Symbol.asyncIterator]: () => this.#iterate(),
  };
  readonly #ports: ArrivalPorts;
  readonly #queue: ChangeQueue;
  readonly #ended = deferred<Lsn>();
  #count: number;
  #endLsn: Lsn | null = null;
  /** Why the end will not arrive. */
  #fault: ConnectionFault | null = null;
  #broken: ConnectionFault | null = null;
  #reader: 'none' | 'reading' | 'done' | 'settled' = 'none';
  /** Resolves for a reader that waits when there is something to tell it. */
  #news: Deferred<void> | null = null;
  /** A reader that waits for nothing would otherwise keep the timers of the process from running. */
  readonly #turn = new LoopTurn();
  #askedAt = performance.now();

  /**
   * @param changes - what has arrived so far
   * @param bytes - payload bytes of these
   */
  constructor(changes: readonly Change[], bytes: number, ports: ArrivalPorts) {
    this.#queue = new ChangeQueue(changes, bytes, () => ports.drained());
    this.#count = changes.length;
    this.#ports = ports;
  }

  /** Payload bytes of changes that were not read yet. */
  get bytes(): number {
    return this.#queue.bytes;
  }

  /** Number of changes that have arrived. */
  get count(): number {
    return this.#count;
  }

  /** When the reader last asked, by `performance.now()`: now while it waits for what the server has not sent. */
  get askedAt(): number {
    return this.#news === null ? this.#askedAt : performance.now();
  }

  /** Its Commit has arrived. */
  get complete(): boolean {
    return this.#endLsn !== null;
  }

  /** Resolves with the end of the Commit; rejects when that will not arrive. */
  get ended(): Promise<Lsn> {
    return this.#ended.promise;
  }

  /** Why its end will not arrive; `null` as long as it may. */
  get fault(): ConnectionFault | null {
    return this.#fault;
  }

  /** What the reader was told instead of the rest; `null` when it was not told so. */
  get broken(): ConnectionFault | null {
    return this.#broken;
  }

  push(change: Change): void {
    this.#count += 1;
    if (this.#wanted) this.#queue.push(change);
  }

  /** What was pushed last had so many payload bytes. */
  received(bytes: number): void {
    if (!this.#wanted) return;
    this.#queue.count(bytes);
    this.#tell();
  }

  /** The Commit has arrived. */
  end(endLsn: Lsn): void {
    this.#endLsn = endLsn;
    this.#ended.resolve(endLsn);
    this.#tell();
  }

  /** The rest will not arrive. */
  fail(fault: ConnectionFault): void {
    this.#fault = fault;
    this.#ended.reject(fault);
    this.#queue.clear();
    this.#tell();
  }

  /** The handler has settled: the rest is not kept. */
  settle(): void {
    this.#reader = 'settled';
    this.#queue.clear();
    this.#tell();
  }

  /** Somebody may still read what arrives. */
  get #wanted(): boolean {
    return this.#reader === 'none' || this.#reader === 'reading';
  }

  #tell(): void {
    this.#news?.resolve();
    this.#news = null;
  }

  #iterate(): AsyncIterableIterator<Change, undefined> {
    if (this.#reader !== 'none') throw this.#misused();
    this.#reader = 'reading';
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: () => this.#next(),
      return: async () => {
        if (this.#reader === 'reading') this.#reader = 'done';
        this.#queue.clear();
        this.#tell();
        return { done: true, value: undefined };
      },
    };
  }

  /** By hand and not a generator, which would cost a promise more for each change. */
  #next(): Promise<Next> {
    if (this.#news !== null) return handled(this.#afterNews(this.#news));
    if (this.#reader === 'settled')
      return handled(Promise.reject(this.#misused()));
    if (this.#reader === 'done')
      return Promise.resolve({ done: true, value: undefined });
    if (this.#fault !== null) {
      this.#broken = this.#fault;
      return handled(Promise.reject(this.#fault));
    }
    this.#askedAt = performance.now();
    if (this.#turn.isLong(this.#askedAt))
      return handled(this.#afterNews(this.#nextTurn()));
    const value = this.#queue.take();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#endLsn === null)
      return handled(this.#afterNews((this.#news = deferred())));
    this.#reader = 'done';
    this.#ports.readToEnd(this.#endLsn);
    return Promise.resolve({ done: true, value: undefined });
  }

  async #afterNews(news: Deferred<void>): Promise<Next> {
    await news.promise;
    return this.#next();
  }

  /** Who asks meanwhile waits behind, so that concurrent calls are answered in their order. */
  #nextTurn(): Deferred<void> {
    const turn = deferred<void>();
    this.#news = turn;
    setImmediate(() => {
      if (this.#news === turn) this.#tell();
    });
    return turn;
  }

  #misused(): ChangesError {
    return new ChangesError(
      this.#reader === 'settled'
        ? 'The changes of a transaction were read after its handler had settled: wait for the reading before the handler returns.'
        : 'The changes of a transaction that is handed over while it arrives were read a second time: keep what is needed later.',
    );
  }
}

/** A reader that asked ahead may look at the answer late: its rejection must not end the process. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
