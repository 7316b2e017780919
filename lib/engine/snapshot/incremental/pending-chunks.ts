import type { Lsn } from '../../model/lsn.js';
import type { Chunk } from './chunk.js';

/**
 * How often the server has to tell the same position before there is nothing to come. Twice is not enough: it answers before it looks for
 * more, so one that slept gives the answers to several questions at once, and those to others and of its own accord may still be under way
 * when a chunk was read. The last of so many belongs to a question that was asked when it had looked.
 */
const TELLINGS = 4;

interface Pending {
  readonly chunk: Chunk;
  /** What the server told last, when nothing came since. */
  told: Lsn | null;
  /** How often it did. */
  tellings: number;
  /** There is nothing more to wait for. */
  reached: boolean;
}

/**
 * Chunks that were read and that the sink has not taken. They wait until everything that commits below their positions was received, and are
 * ready in their order.
 */
export class PendingChunks {
  readonly #askPosition: () => void;
  #chunks: Pending[] = [];
  /** Those that wait, and those that were ready. */
  #count = 0;
  #bytes = 0;
  /** Everything that commits below was received. */
  #reached: Lsn = 0n;
  /** The log of the source is flushed up to here. Of what is behind it the stream brings nothing. */
  #flushed: Lsn = 0n;
  /** The server was asked for its position and has not answered. */
  #asked = false;
  /** It has answered at a time at which that said nothing. */
  #askAgain = false;

  constructor(askPosition: () => void) {
    this.#askPosition = askPosition;
  }

  get count(): number {
    return this.#count;
  }

  /** Of their rows. */
  get bytes(): number {
    return this.#bytes;
  }

  get first(): Chunk | null {
    return this.#chunks[0]?.chunk ?? null;
  }

  /** The first, if the stream has reached it. */
  get ready(): Chunk | null {
    const [first] = this.#chunks;
    if (first === undefined) return null;
    return first.reached || this.#reached >= first.chunk.readAt
      ? first.chunk
      : null;
  }

  /** Whether they wait for a commit to be flushed that they could see: those with `synchronous_commit = off` are visible before. */
  get awaitFlush(): boolean {
    const [first] = this.#chunks;
    return first !== undefined && !this.#isFlushed(first) && !this.ready;
  }

  push(chunk: Chunk): void {
    this.#chunks.push({ chunk, told: null, tellings: 0, reached: false });
    this.#count += 1;
    this.#bytes += chunk.bytes;
    this.flushed(chunk.flushed);
  }

  /** The first does not wait any more. */
  shift(): void {
    this.#chunks.shift();
  }

  /** The sink has taken a chunk that was ready. */
  taken({ bytes }: Chunk): void {
    this.#count -= 1;
    this.#bytes -= bytes;
  }

  /** Throws away chunks that wait, all of them or from the first of a table on. */
  drop(oid?: number): Chunk[] {
    const first =
      oid === undefined
        ? 0
        : this.#chunks.findIndex(({ chunk }) => chunk.table.oid === oid);
    if (first < 0) return [];
    const chunks = this.#chunks.splice(first).map(({ chunk }) => chunk);
    for (const chunk of chunks) this.taken(chunk);
    return chunks;
  }

  /** The stream has brought something, and everything that commits below. */
  reach(position: Lsn): void {
    for (const pending of this.#chunks) pending.told = null;
    this.#advance(position);
  }

  /** The log of the source is flushed up to here. */
  flushed(position: Lsn): void {
    if (position > this.#flushed) this.#flushed = position;
  }

  /**
   * The server told its position. Where the end of the log is no record, it does not come up to a position that was read there: when it
   * tells the same one again and again, though the log is flushed, and nothing came in between, there is nothing to come.
   */
  told(position: Lsn): void {
    this.#asked = false;
    this.#advance(position);
    for (const pending of this.#chunks) {
      if (!this.#isFlushed(pending)) continue;
      pending.tellings = pending.told === position ? pending.tellings + 1 : 1;
      pending.told = position;
      if (pending.tellings >= TELLINGS) pending.reached = true;
    }
  }

  /** The server told its position in the middle of a transaction. */
  toldWithin(): void {
    this.#asked = false;
    this.#askAgain = true;
  }

  /**
   * Asks the server, when chunks wait for it. There is one question of theirs at a time.
   */
  ask(): void {
    const [first] = this.#chunks;
    if (this.#asked || first === undefined || !this.#isFlushed(first)) return;
    this.#asked = true;
    this.#askAgain = false;
    this.#askPosition();
  }

  /** Asks again, when the last answer said nothing. */
  askAgain(): void {
    if (this.#askAgain) this.ask();
  }

  #isFlushed({ chunk }: Pending): boolean {
    return chunk.readAt <= this.#flushed;
  }

  #advance(position: Lsn): void {
    if (position > this.#reached) this.#reached = position;
  }
}
