import { PAGE_BYTES } from '../raw-row.js';

/** Room for rows that are wider than those before: a chunk that is cut costs its session. */
const AIM_BYTES = PAGE_BYTES * 0.75;

/** So many rows at least are asked for because of what is changed meanwhile. */
const FEW_ROWS = 100;

/** How many rows of a table are asked for at a time, so that a chunk seldom has to be cut. */
export class ChunkLimit {
  #most: number;
  #rowBytes: number | null;

  /**
   * @param most - rows of a chunk of narrow rows
   * @param estimatedRowBytes - by the statistics of the server
   */
  constructor(most: number, estimatedRowBytes: number | null) {
    this.#most = most;
    this.#rowBytes = estimatedRowBytes;
  }

  get rows(): number {
    const rowBytes = this.#rowBytes ?? 0;
    if (rowBytes * this.#most <= AIM_BYTES) return this.#most;
    return Math.max(1, Math.floor(AIM_BYTES / rowBytes));
  }

  /** Learns from what was read; nothing from no row. */
  saw(rows: number, bytes: number): void {
    if (rows > 0) this.#rowBytes = bytes / rows;
  }

  /** Chunks were too large for what is changed while they are read. */
  shrink(): void {
    if (this.#most > FEW_ROWS)
      this.#most = Math.max(FEW_ROWS, Math.floor(this.#most / 2));
  }
}
