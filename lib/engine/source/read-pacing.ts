/** So many turns of the event loop in a row with data make a stream dense. */
export const DENSE_TURNS = 64;
/** Data that came after a longer wait, in milliseconds, is not dense. */
export const DENSE_WAIT_MS = 3;
/** How long a dense stream gathers between two turns, in milliseconds. */
export const PAUSE_MS = 4;
/** A pause that brings fewer bytes was not worth its delay. */
export const WORTHWHILE_BYTES = 16 * 1024;

/** What one turn of the event loop brought. */
export interface ReadingTurn {
  /** Bytes that arrived in it, without those that Node had buffered before. */
  readonly bytes: number;
  /** Milliseconds from the turn before, or from the end of the pause, to the first of them. */
  readonly waitedMs: number;
}

/**
 * Turns in a row that made the stream dense, up to {@link DENSE_TURNS}: a stream that has reached these is paced.
 *
 * An eager reader pays a wake-up and a read for every message, and so does the server that writes it. While data is
 * dense, it is cheaper for both to let some gather. This decides it once per turn of the event loop; a decision per read
 * would delay small messages and not see how dense the stream is. What follows a wait is never held up.
 */
export function densityAfter(
  density: number,
  { bytes, waitedMs }: ReadingTurn,
): number {
  if (waitedMs > DENSE_WAIT_MS) return 1;
  if (density < DENSE_TURNS) return density + 1;
  return bytes < WORTHWHILE_BYTES ? 0 : DENSE_TURNS;
}
