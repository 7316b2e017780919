/** So many turns of the event loop in a row with data make a stream dense. */
export const DENSE_TURNS = 64;
/** Data that came after a longer wait, in milliseconds, is not dense. */
export const DENSE_WAIT_MS = 3;
/** How long a dense stream gathers, in milliseconds. */
export const REST_MS = 1;
/** A rest that gathers fewer bytes is not worth its delay. */
export const WORTHWHILE_BYTES = 4 * 1024;
/**
 * A turn that brings as many shows a reader that is slower than the stream: bytes gather while it works, and a rest would
 * only make the sender wait.
 */
export const FULL_TURN_BYTES = 64 * 1024;
/**
 * So many turns after a rest bring what it gathered. The first one may bring only what was under way: a sender whose
 * congestion window was full sends the rest when the first read acknowledges that.
 */
export const GATHERED_TURNS = 2;

/** What one turn of the event loop brought. */
export interface ReadingTurn {
  /** Bytes that arrived in it, without those that Node had buffered before. */
  readonly bytes: number;
  /** Milliseconds from the turn before, or from the end of the rest, to the first of them. */
  readonly waitedMs: number;
  /** Milliseconds from the turn before, or from the end of the rest, to the end of this one. */
  readonly ms: number;
}

/** How dense a stream is. */
export interface Pace {
  /** Turns in a row that made it dense, up to {@link DENSE_TURNS}: a stream that has reached these is paced. */
  readonly density: number;
  /** Turns since the last rest of a paced stream. */
  readonly turns: number;
  /** What they brought: the turns since the last rest, or those that may make it dense. */
  readonly bytes: number;
  /** What these took. */
  readonly ms: number;
}

/** The pace of a stream of which nothing is known. */
export const EAGER: Pace = { density: 0, turns: 0, bytes: 0, ms: 0 };
const DENSE: Pace = { density: DENSE_TURNS, turns: 0, bytes: 0, ms: 0 };

/**
 * Decides after each turn of the event loop with data. An eager reader pays a wake-up and a read for every message, and
 * so does the server that writes it: while data is dense, it is cheaper for both to let some gather. A decision per read
 * would delay small messages and not see how dense the stream is. What follows a wait is never held up, nor is a stream so
 * thin that a rest would gather little.
 */
export function paceAfter(pace: Pace, turn: ReadingTurn): Pace {
  if (turn.waitedMs > DENSE_WAIT_MS) return { ...EAGER, density: 1 };
  const bytes = pace.bytes + turn.bytes;
  const ms = pace.ms + turn.ms;
  if (!isPaced(pace)) {
    const density = pace.density + 1;
    if (density < DENSE_TURNS) return { ...EAGER, density, bytes, ms };
    return bytes * REST_MS >= WORTHWHILE_BYTES * ms ? paced(turn) : EAGER;
  }
  if (bytes >= WORTHWHILE_BYTES) return paced(turn);
  const turns = pace.turns + 1;
  return turns < GATHERED_TURNS ? { ...pace, turns, bytes, ms } : EAGER;
}

/** Goes on with a rest, or at once after a turn that was full. */
function paced({ bytes, ms }: ReadingTurn): Pace {
  return bytes < FULL_TURN_BYTES ? DENSE : { ...DENSE, turns: 1, bytes, ms };
}

export function isPaced({ density }: Pace): boolean {
  return density >= DENSE_TURNS;
}

/** Whether reading rests now. */
export function restIsDue(pace: Pace): boolean {
  return isPaced(pace) && pace.turns === 0;
}
