import { deferred, type Deferred } from '../model/deferred.js';
import { CopiedRows } from './copy-text.js';
import type { Page } from './raw-row.js';

/** A page ends with the row by which it reaches one of these. */
export interface PageLimits {
  readonly rows: number;
  /** Of text. */
  readonly bytes: number;
}

/** Lets rows come, or holds them back; some that are on their way come after a pause. */
export interface RowFlow {
  pause(): void;
  resume(): void;
}

/** Makes pages of rows for one consumer, and holds rows back for as long as it has not asked for more. */
export class PageQueue {
  readonly #limits: PageLimits;
  readonly #flow: RowFlow;
  #lines: string[] = [];
  #bytes = 0;
  readonly #pages: Page[] = [];
  #ended = false;
  #failure: { readonly reason: unknown } | null = null;
  /** Of the consumer that waits. */
  #wanted: Deferred<void> | null = null;

  constructor(limits: PageLimits, flow: RowFlow) {
    this.#limits = limits;
    this.#flow = flow;
  }

  /** Whether it is known that no row follows. */
  get settled(): boolean {
    return this.#ended || this.#failure !== null;
  }

  /**
   * @param line - a row as COPY TO has it
   * @param bytes - of its text
   */
  add(line: string, bytes: number): void {
    this.#lines.push(line);
    this.#bytes += bytes;
    if (
      this.#lines.length < this.#limits.rows &&
      this.#bytes < this.#limits.bytes
    )
      return;
    this.#endPage();
    this.#flow.pause();
  }

  /** No row follows. */
  end(): void {
    if (this.#lines.length > 0) this.#endPage();
    this.#ended = true;
    this.#wake();
  }

  /** No row follows, for this reason; what is left is not handed over any more. */
  fail(reason: unknown): void {
    this.#failure = { reason };
    this.#wake();
  }

  /** The next page, or `null` at the end. One call at a time. */
  async next(): Promise<Page | null> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure.reason;
      const page = this.#pages.shift();
      if (page !== undefined) return page;
      if (this.#ended) return null;
      this.#wanted = deferred();
      this.#flow.resume();
      await this.#wanted.promise;
    }
  }

  #endPage(): void {
    this.#pages.push({
      rows: new CopiedRows(this.#lines),
      bytes: this.#bytes,
    });
    this.#lines = [];
    this.#bytes = 0;
    this.#wake();
  }

  #wake(): void {
    this.#wanted?.resolve();
    this.#wanted = null;
  }
}
