import type { Change } from '../model/change.js';

/** Changes are let go of in batches of so many payload bytes: counting each by itself would cost more than it frees. */
const BATCH_BYTES = 64 * 1024;

/** Some changes in a row and the payload bytes that they hold. */
interface Batch {
  readonly changes: readonly Change[];
  readonly bytes: number;
}

const NOTHING: Batch = { changes: [], bytes: 0 };

/** Changes that wait to be read, first in, first out, and the payload bytes that they hold. */
export class ChangeQueue {
  readonly #drained: () => void;
  #batches: Batch[];
  #reading = NOTHING;
  /** How many of those being read were taken. */
  #taken = 0;
  /** The last batch, to which is added. */
  #filling: Change[] = [];
  #fillingBytes = 0;
  #bytes: number;

  /**
   * @param changes - the first ones
   * @param bytes - payload bytes of these
   * @param drained - called when it holds less than before
   */
  constructor(changes: readonly Change[], bytes: number, drained: () => void) {
    this.#batches = batchesOf(changes, bytes);
    this.#bytes = bytes;
    this.#drained = drained;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(change: Change): void {
    this.#filling.push(change);
  }

  /** What was pushed last had so many payload bytes. */
  count(bytes: number): void {
    this.#bytes += bytes;
    this.#fillingBytes += bytes;
    if (this.#fillingBytes >= BATCH_BYTES) this.#closeBatch();
  }

  take(): Change | undefined {
    if (this.#taken === this.#reading.changes.length) this.#openBatch();
    const change = this.#reading.changes[this.#taken];
    if (change !== undefined) this.#taken += 1;
    return change;
  }

  clear(): void {
    this.#batches = [];
    this.#reading = NOTHING;
    this.#taken = 0;
    this.#filling = [];
    this.#fillingBytes = 0;
    this.#letGo(this.#bytes);
  }

  #closeBatch(): void {
    this.#batches.push({ changes: this.#filling, bytes: this.#fillingBytes });
    this.#filling = [];
    this.#fillingBytes = 0;
  }

  /** Goes on to the next batch, or to none. */
  #openBatch(): void {
    const { bytes } = this.#reading;
    if (this.#batches.length === 0 && this.#filling.length > 0)
      this.#closeBatch();
    this.#reading = this.#batches.shift() ?? NOTHING;
    this.#taken = 0;
    this.#letGo(bytes);
  }

  #letGo(bytes: number): void {
    if (bytes === 0) return;
    this.#bytes -= bytes;
    this.#drained();
  }
}

/** Cuts what arrived before anybody read, as if all changes were of one size. */
function batchesOf(changes: readonly Change[], bytes: number): Batch[] {
  const count = Math.max(1, Math.ceil(bytes / BATCH_BYTES));
  const size = Math.ceil(changes.length / count);
  const batches: Batch[] = [];
  let counted = 0;
  for (let at = 0; at < changes.length; at += size) {
    const part = changes.slice(at, at + size);
    const end = Math.round((bytes * (at + part.length)) / changes.length);
    batches.push({ changes: part, bytes: end - counted });
    counted = end;
  }
  return batches;
}
