import { type Deferred, deferred } from '../../lib/engine/model/deferred.js';
import type { TransactionFile } from '../../lib/engine/streamed/streamed-transaction.js';

/** Files of transactions, without a disk. Writes take until they are told to be done. */
export class SpillFilesInMemory {
  readonly files = new Map<number, FileInMemory>();
  /** Writes that run, the oldest first. */
  readonly writes: PendingWrite[] = [];

  readonly fileOf = (xid: number): FileInMemory => {
    const file = new FileInMemory(this.writes);
    this.files.set(xid, file);
    return file;
  };

  /** Bytes of blocks that are being written. */
  get writing(): number {
    return this.writes.reduce((sum, { blocks }) => sum + heldBy(blocks), 0);
  }

  /** Ends writes, the oldest or all; resolves when whoever waits for them knows. */
  async finish(count = this.writes.length): Promise<void> {
    for (const { blocks, file, done } of this.writes.splice(0, count)) {
      file.written.push(...blocks);
      done.resolve();
      await done.promise;
    }
  }
}

interface PendingWrite {
  readonly blocks: readonly Buffer[];
  readonly file: FileInMemory;
  readonly done: Deferred<void>;
}

export class FileInMemory implements TransactionFile {
  readonly written: Buffer[] = [];
  removed = false;
  readonly #writes: PendingWrite[];
  /** The last write that was asked for. */
  #last: Promise<void> = Promise.resolve();

  constructor(writes: PendingWrite[]) {
    this.#writes = writes;
  }

  /** Bytes that were written. */
  get bytes(): number {
    return this.written.reduce((sum, { length }) => sum + length, 0);
  }

  write(blocks: readonly Buffer[]): Promise<void> {
    const done = deferred<void>();
    this.#writes.push({ blocks, file: this, done });
    this.#last = done.promise;
    return done.promise;
  }

  async *blocks(): AsyncGenerator<Buffer, void, void> {
    await this.#last;
    for (const block of this.written) yield Buffer.from(block);
  }

  remove(): Promise<void> {
    this.removed = true;
    return Promise.resolve();
  }
}

/** Bytes of memory that blocks take, used or not. */
export function heldBy(blocks: readonly Buffer[]): number {
  return blocks.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
}
