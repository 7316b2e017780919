import { unlink } from 'node:fs/promises';
import type { BlockPlace, BlockSeal } from './block-seal.js';
import { codeOf, SpillError, spillError } from './spill-error.js';

/** What is done with an open file. Both writing and reading may stop early. */
export interface OpenFile {
  writev(
    parts: readonly Buffer[],
    position: number,
  ): Promise<{ readonly bytesWritten: number }>;
  read(
    into: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
  close(): Promise<void>;
}

/** What a spill file is made of. */
export interface SpillFileParts {
  /** Of the transaction. */
  readonly xid: number;
  readonly path: string;
  readonly seal: BlockSeal;
  /** Makes the file and opens it, at the first block. */
  readonly open: (path: string) => Promise<OpenFile>;
  /** It is gone from the disk. */
  readonly onRemoved: () => void;
}

/**
 * What was written to disk of one transaction, block by block. It is read by the process that wrote it and by none after it, so nothing is
 * synced, and where each block is stands in memory alone.
 */
export class SpillFile {
  readonly xid: number;
  readonly #parts: SpillFileParts;
  #file: OpenFile | null = null;
  /** Bytes of each block with its header. */
  readonly #lengths: number[] = [];
  #bytes = 0;
  /** After a failed write nobody knows what the file holds. */
  #fault: SpillError | null = null;
  /** Settles with the write that was asked for last, and never rejects. */
  #written: Promise<void> = Promise.resolve();
  #removal: Promise<void> | null = null;

  constructor(parts: SpillFileParts) {
    this.xid = parts.xid;
    this.#parts = parts;
  }

  /** Bytes on disk of what was written wholly. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Appends blocks. It need not have resolved before it is called again. Of a file that is being removed nothing is written any more, and it
   * resolves all the same.
   *
   * @throws {SpillError} when it cannot be written, then and ever after
   */
  write(blocks: readonly Buffer[]): Promise<void> {
    const written = this.#written.then(() => this.#append(blocks));
    this.#written = written.catch(() => undefined);
    return written;
  }

  /**
   * What was written, in order. One block is in memory at a time, and belongs to the caller.
   *
   * @throws {SpillError} when it is not what was written, or the file is gone
   */
  async *blocks(): AsyncGenerator<Buffer, void, void> {
    await this.#written;
    if (this.#fault !== null) throw this.#fault;
    let start = 0;
    for (const [number, length] of this.#lengths.entries()) {
      const sealed = await this.#read(start, length);
      start += length;
      yield await this.#parts.seal.open(sealed, this.#place(number));
    }
  }

  /**
   * Removes it from the disk, once running writes have settled. It may be called again, and resolves too when somebody else has removed it.
   *
   * @throws {SpillError} when it cannot be removed
   */
  remove(): Promise<void> {
    this.#removal ??= this.#remove();
    return this.#removal;
  }

  async #append(blocks: readonly Buffer[]): Promise<void> {
    if (this.#fault !== null) throw this.#fault;
    try {
      for (const block of blocks) {
        if (this.#removal !== null) return;
        const place = this.#place(this.#lengths.length);
        await this.#writeAll(await this.#parts.seal.seal(block, place));
        const length = this.#parts.seal.headerBytes + block.length;
        this.#lengths.push(length);
        this.#bytes += length;
      }
    } catch (error) {
      this.#fault = spillError('writing a spill file', error);
      throw this.#fault;
    }
  }

  async #writeAll(parts: readonly Buffer[]): Promise<void> {
    this.#file ??= await this.#parts.open(this.#parts.path);
    let position = this.#bytes;
    let rest = parts.filter(({ length }) => length > 0);
    while (rest.length > 0) {
      const { bytesWritten } = await this.#file.writev(rest, position);
      position += bytesWritten;
      rest = behind(rest, bytesWritten);
    }
  }

  async #read(start: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafeSlow(length);
    let done = 0;
    while (done < length) {
      if (this.#file === null || this.#removal !== null)
        throw new SpillError(
          'removed',
          `the spill file of transaction ${this.xid} was removed before it was read to its end`,
        );
      const { bytesRead } = await this.#file
        .read(bytes, done, length - done, start + done)
        .catch((error: unknown) => {
          throw spillError('reading a spill file', error);
        });
      if (bytesRead === 0)
        throw new SpillError(
          'truncated',
          `the spill file of transaction ${this.xid} ends before its last block`,
        );
      done += bytesRead;
    }
    return bytes;
  }

  async #remove(): Promise<void> {
    await this.#written;
    try {
      if (this.#file !== null) await this.#unlink();
    } finally {
      // What closing complains of was written to no purpose.
      await this.#file?.close().catch(() => undefined);
    }
    this.#parts.onRemoved();
  }

  async #unlink(): Promise<void> {
    try {
      await unlink(this.#parts.path);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT')
        throw spillError('removing a spill file', error);
    }
  }

  #place(number: number): BlockPlace {
    return { xid: this.xid, number };
  }
}

/** What is left of parts of which so many bytes were written. */
function behind(parts: readonly Buffer[], written: number): Buffer[] {
  let skip = written;
  return parts.flatMap((part) => {
    const left = part.subarray(skip);
    skip = Math.max(0, skip - part.length);
    return left.length > 0 ? [left] : [];
  });
}
