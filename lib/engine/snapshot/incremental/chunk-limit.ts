import { PAGE_BYTES } from '../raw-row.js';

/** Room for rows that are wider than those before: a chunk that is cut costs its session. */
const AIM_BYTES = PAGE_BYTES * 0.75;

/** How many rows of a table are asked for at a time, so that a chunk seldom has to be cut. */
export class ChunkLimit {
  #rowBytes: number | null;

  /**
   * @param most - rows of a chunk of narrow rows
   * @param estimatedRowBytes - by the statistics of the server
   */
  constructor(
    private readonly most: number,
    estimatedRowBytes: number | null,
  ) {
    this.#rowBytes = estimatedRowBytes;
  }

  get rows(): number {
    const rowBytes = this.#rowBytes ?? 0;
    if (rowBytes * this.most <= AIM_BYTES) return this.most;
    return Math.max(1, Math.floor(AIM_BYTES / rowBytes));
  }

  /** Learns from what was read; nothing from no row. */
  saw(rows: number, bytes: number): void {
    if (rows > 0) this.#rowBytes = bytes / rows;
  }
}
