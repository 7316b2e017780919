import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorClass } from '../model/error-class.js';
import { HaltError } from '../model/halt.js';
import { LoopTurn } from '../model/loop-turn.js';
import { SpillError } from './spill-error.js';
import type {
  StreamedTransaction,
  TransactionFile,
} from './streamed-transaction.js';

/** What may be held. */
export interface RoomLimits {
  /** Bytes in memory. */
  readonly bytes: number;
  /** Bytes on disk; not needed where nothing is written to disk. */
  readonly bytesOnDisk: number;
}

/** What holding running transactions asks of its connection. */
export interface RoomPorts {
  /** Gives the file of a transaction; `null` where nothing may be written to disk. */
  readonly fileOf: ((xid: number) => TransactionFile) | null;
  /** Nothing more is read until some of what is held is on disk. */
  hold(): void;
  release(): void;
  /** Something was written to disk. */
  spilled(xid: number, bytes: number): void;
  failed(error: HaltError): void;
}

/** The room that running transactions take, in memory and on disk. When there is too little, the largest goes to disk. */
export class StreamedRoom {
  readonly #limits: RoomLimits;
  readonly #ports: RoomPorts;
  readonly #open = new Set<StreamedTransaction>();
  /** Bytes in memory. */
  #bytes = 0;
  /** Bytes that are being written to disk. */
  #writing = 0;
  #bytesOnDisk = 0;
  /** What was rolled back is being left out. */
  #isLeavingOut = false;
  #isHolding = false;

  constructor(limits: RoomLimits, ports: RoomPorts) {
    this.#limits = limits;
    this.#ports = ports;
  }

  /** Bytes in memory of open transactions, and of what is being written. */
  get bytes(): number {
    return this.#bytes + this.#writing;
  }

  get bytesOnDisk(): number {
    return this.#bytesOnDisk;
  }

  /** A transaction has begun. */
  open(transaction: StreamedTransaction): void {
    this.#open.add(transaction);
  }

  /** A transaction has ended: what it holds in memory is counted no more. */
  close(transaction: StreamedTransaction): void {
    this.#open.delete(transaction);
    this.#bytes -= transaction.bytes;
  }

  /** One of them holds so many bytes more. */
  grow(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#mostInMemory)
      this.#makeRoom().catch((error: unknown) => this.#fail(error));
  }

  /** Removes what a transaction has on disk. */
  discard({ file, bytesOnDisk }: StreamedTransaction): void {
    if (file === null) return;
    this.#bytesOnDisk -= bytesOnDisk;
    file.remove().catch((error: unknown) => this.#fail(error));
  }

  /** Lets go of everything. Files are removed with their folder. */
  clear(): void {
    this.#open.clear();
    this.#bytes = 0;
    this.#bytesOnDisk = 0;
  }

  /** With a disk, one half is filled while the other is written. */
  get #mostInMemory(): number {
    const { bytes } = this.#limits;
    return this.#ports.fileOf === null ? bytes : bytes / 2;
  }

  /** What was rolled back goes first. Where that takes long, nothing more is read until then. */
  async #makeRoom(): Promise<void> {
    if (this.#isLeavingOut) return;
    this.#isLeavingOut = true;
    const turn = new LoopTurn();
    for (const _ of this.#leaveOut()) {
      if (!turn.isLong()) continue;
      this.#holdOrRelease();
      await nextTurn();
    }
    this.#isLeavingOut = false;
    this.#holdOrRelease();
    if (this.#bytes > this.#mostInMemory) this.#spillLargest();
  }

  *#leaveOut(): Generator<void, void, void> {
    for (const transaction of this.#open) {
      if (!transaction.hasToLeaveOut) continue;
      let before = transaction.bytes;
      for (const _ of transaction.leaveOutAborted()) {
        this.#bytes += transaction.bytes - before;
        yield;
        // It may have ended meanwhile.
        if (!this.#open.has(transaction)) break;
        before = transaction.bytes;
      }
    }
  }

  #spillLargest(): void {
    const { fileOf } = this.#ports;
    if (fileOf !== null) return this.#spill(this.#largest(), fileOf);
    this.#ports.failed(
      new HaltError('transaction_too_large', {
        detail: `running transactions hold more than maxInflightBytes (${this.#limits.bytes}), and the option streaming has no spill`,
      }),
    );
  }

  #largest(): StreamedTransaction {
    return [...this.#open].reduce((one, other) =>
      other.bytes > one.bytes ? other : one,
    );
  }

  #spill(
    transaction: StreamedTransaction,
    fileOf: (xid: number) => TransactionFile,
  ): void {
    const { bytes, length } = transaction;
    if (this.#bytesOnDisk + length > this.#limits.bytesOnDisk)
      return this.#ports.failed(
        new HaltError('spill_exhausted', {
          detail: `running transactions hold more than maxSpillBytes (${this.#limits.bytesOnDisk})`,
        }),
      );
    this.#bytes -= bytes;
    this.#bytesOnDisk += length;
    this.#writing += bytes;
    this.#holdOrRelease();
    transaction.spill(transaction.file ?? fileOf(transaction.xid)).then(
      () => {
        this.#writing -= bytes;
        this.#holdOrRelease();
        this.#ports.spilled(transaction.xid, length);
      },
      (error: unknown) => this.#fail(error),
    );
  }

  #holdOrRelease(): void {
    const held = this.#isLeavingOut || this.#writing > this.#mostInMemory;
    if (held === this.#isHolding) return;
    this.#isHolding = held;
    if (held) this.#ports.hold();
    else this.#ports.release();
  }

  #fail(error: unknown): void {
    this.#ports.failed(spillFailed(error));
  }
}

/** The halt of a fault that reading or writing a file ended with. */
export function spillFailed(error: unknown): HaltError {
  return new HaltError('spill_io_failed', {
    detail: error instanceof SpillError ? error.message : errorClass(error),
  });
}
