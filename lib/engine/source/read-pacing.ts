/** So many turns of the event loop in a row with data make a stream dense. */
export const DENSE_TURNS = 64;
/** Data that came after a longer wait, in milliseconds, is not dense. */
export const DENSE_WAIT_MS = 3;
/** What a stream must bring in a millisecond to be worth a rest. */
export const DENSE_RATE_BYTES = 4 * 1024;
/** What a rest is to gather: enough to close the receive window, behind which the sender puts small messages together. */
export const GATHERED_BYTES = 1024 * 1024;
/** The longest rest, in milliseconds. */
export const LONGEST_REST_MS = 16;
/** A rest that gathered fewer bytes was not worth its delay. */
export const WORTHWHILE_BYTES = 16 * 1024;
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
  /** What was brought since the last rest began, or by the turns that may make the stream dense. */
  readonly bytes: number;
  /** Milliseconds that this took. */
  readonly ms: number;
  /** The most that one of these turns brought. */
  readonly peak: number;
  /** Milliseconds to rest now; 0 for going on. */
  readonly restMs: number;
}

/** The pace of a stream of which nothing is known. */
export const EAGER: Pace = {
  density: 0,
  turns: 0,
  bytes: 0,
  ms: 0,
  peak: 0,
  restMs: 0,
};

/**
 * Decides after each turn of the event loop with data. An eager reader pays a wake-up and a read for every message, and
 * so does the server that writes it: while data is dense, it is cheaper for both to let some gather. A decision per read
 * would delay small messages and not see how dense the stream is. What follows a wait is never held up, nor is a stream so
 * thin that a rest would gather little.
 */
export function paceAfter(pace: Pace, turn: ReadingTurn): Pace {
  if (turn.waitedMs > DENSE_WAIT_MS) return { ...EAGER, density: 1 };
  const next = {
    density: Math.min(pace.density + 1, DENSE_TURNS),
    turns: pace.turns + 1,
    bytes: pace.bytes + turn.bytes,
    ms: pace.ms + turn.ms,
    peak: Math.max(pace.peak, turn.bytes),
    restMs: 0,
  };
  if (isPaced(pace)) return pacedAfter(next, turn);
  if (!isPaced(next)) return next;
  return next.bytes >= DENSE_RATE_BYTES * next.ms ? rest(next) : EAGER;
}

/** A turn as rich as those before shows that more is waiting; a rest would then only make the sender wait. */
function pacedAfter(next: Pace, { bytes }: ReadingTurn): Pace {
  if (bytes >= WORTHWHILE_BYTES && bytes * 2 >= next.peak) return next;
  if (next.bytes >= WORTHWHILE_BYTES) return rest(next);
  return next.turns < GATHERED_TURNS ? next : EAGER;
}

/** As long as it takes to gather what is wanted at the rate seen, and not longer than is bearable. */
function rest({ bytes, ms }: Pace): Pace {
  const wanted = Math.round((GATHERED_BYTES * ms) / bytes);
  const restMs = Math.max(1, Math.min(LONGEST_REST_MS, wanted));
  return { ...EAGER, density: DENSE_TURNS, ms: restMs, restMs };
}

export function isPaced({ density }: Pace): boolean {
  return density >= DENSE_TURNS;
}
