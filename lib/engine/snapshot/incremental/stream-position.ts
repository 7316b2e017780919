import type { Lsn } from '../../model/lsn.js';

/** Waits until everything that commits below a position was received. */
export interface Waiting {
  readonly readAt: Lsn;
  /** What the server told last, when nothing came since. */
  told: Lsn | null;
  /** There is nothing to wait for. */
  reached: boolean;
}

/** How far the stream was received. */
export class StreamPosition {
  /** Everything that commits below was received. */
  #reached: Lsn = 0n;

  isReached({ readAt, reached }: Waiting): boolean {
    return reached || this.#reached >= readAt;
  }

  /** The stream brought something. */
  moved(waiting: readonly Waiting[]): void {
    for (const one of waiting) one.told = null;
  }

  reach(position: Lsn): void {
    if (position > this.#reached) this.#reached = position;
  }

  /**
   * The server told its position. Where the last bytes of the log are not yet written out, or belong to no record, it does not get to a
   * position that was read; when it tells the same one twice, and nothing came in between, then there is nothing to come.
   */
  told(position: Lsn, waiting: readonly Waiting[]): void {
    this.reach(position);
    for (const one of waiting) {
      if (one.told === position) one.reached = true;
      one.told = position;
    }
  }
}
