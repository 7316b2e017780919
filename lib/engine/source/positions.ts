import type { Lsn } from '../model/lsn.js';
import type { Status } from './wire.js';

/**
 * Where one connection is. Each position has one job and never moves backwards:
 *
 * - *received*: the server has sent this much
 * - *delivered*: the sink was handed everything up to here
 * - *durable*: the work of every transaction up to here is durable, with no gap
 * - *recorded*: the end of the last transaction that the sink has made durable
 * - *stored*: a position this high is kept with the checkpoint, and only up to it may the server forget
 */
export class Positions {
  #received: Lsn;
  #delivered: Lsn;
  #durable: Lsn;
  #recorded: Lsn;
  #stored: Lsn;
  /** Where the server said it is; everything below was sent before it said so. */
  #announced: Lsn = 0n;
  /** Transactions that were received whole and are not durable yet. */
  #undelivered = 0;
  /** A transaction has begun and its end was not received. */
  #open = false;

  /**
   * @param confirmedFlush position of the slot, as read at connect
   * @param keepsPositions whether the checkpoint stores positions, and nothing may be confirmed before
   * @param recordsOnly whether the ends of transactions are confirmed, and nothing that concerns nobody
   */
  constructor(
    confirmedFlush: Lsn,
    private readonly keepsPositions: boolean,
    private readonly recordsOnly = false,
  ) {
    this.#received = confirmedFlush;
    this.#delivered = confirmedFlush;
    this.#durable = confirmedFlush;
    this.#recorded = confirmedFlush;
    this.#stored = confirmedFlush;
  }

  get received(): Lsn {
    return this.#received;
  }

  get delivered(): Lsn {
    return this.#delivered;
  }

  get durable(): Lsn {
    return this.#durable;
  }

  /** What the server may forget. */
  get flush(): Lsn {
    const confirmable = this.#confirmable;
    if (!this.keepsPositions) return confirmable;
    return confirmable < this.#stored ? confirmable : this.#stored;
  }

  get status(): Status {
    return { write: this.#received, flush: this.flush, apply: this.flush };
  }

  /** Nothing that was received is undelivered. */
  get idle(): boolean {
    return !this.#open && this.#undelivered === 0;
  }

  /** The sink has all that was received, and yet not all is confirmed: the rest concerns nobody, and no transaction carries it. */
  get withheld(): boolean {
    return (
      this.recordsOnly &&
      this.idle &&
      this.storable === null &&
      this.flush < this.#received
    );
  }

  /** A position that may be confirmed and is not stored yet; `null` when there is none. */
  get storable(): Lsn | null {
    const confirmable = this.#confirmable;
    return this.keepsPositions && confirmable > this.#stored
      ? confirmable
      : null;
  }

  /** A frame of data arrived. */
  receive(position: Lsn): void {
    this.#received = higher(this.#received, position);
  }

  begin(): void {
    this.#open = true;
  }

  /** The last frame of a transaction arrived, or a message outside transactions, which ends at this position too. */
  complete(commitEnd: Lsn): void {
    this.#open = false;
    this.#undelivered += 1;
    this.#received = higher(this.#received, commitEnd);
  }

  /** The sink is handed the oldest undelivered transaction. */
  handOver(commitEnd: Lsn): void {
    this.#delivered = higher(this.#delivered, commitEnd);
  }

  /**
   * The oldest undelivered transaction is durable.
   *
   * @param empty - there was nothing in it
   */
  settle(commitEnd: Lsn, empty = false): void {
    this.#undelivered -= 1;
    if (!empty) this.#recorded = higher(this.#recorded, commitEnd);
    this.#delivered = higher(this.#delivered, commitEnd);
    this.#durable = higher(this.#durable, commitEnd);
    this.#catchUp();
  }

  /** This position is kept with the checkpoint. */
  store(position: Lsn): void {
    this.#stored = higher(this.#stored, position);
  }

  /** The server is here, and everything below was sent or concerns nobody. */
  keepalive(walEnd: Lsn): void {
    this.#received = higher(this.#received, walEnd);
    this.#announced = higher(this.#announced, walEnd);
    this.#catchUp();
  }

  get #confirmable(): Lsn {
    return this.recordsOnly ? this.#recorded : this.#durable;
  }

  /** A server that has told its position does not repeat it soon, so one that came too early counts later. */
  #catchUp(): void {
    if (!this.idle) return;
    this.#delivered = higher(this.#delivered, this.#announced);
    this.#durable = higher(this.#durable, this.#announced);
  }
}

function higher(one: Lsn, other: Lsn): Lsn {
  return other > one ? other : one;
}
