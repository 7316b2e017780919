const LONGEST_INTERVAL_MS = 10_000;
/** Not more often than this while positions move. */
const MOVE_GAP_MS = 100;
/** A server that shuts down asks again with every answer. */
const REPLY_GAP_MS = 50;

/**
 * Milliseconds between status updates when nothing happens: a quarter of the time after which the server gives up,
 * so that three may be lost.
 */
export function statusInterval(walSenderTimeoutMs: number): number {
  if (walSenderTimeoutMs === 0) return LONGEST_INTERVAL_MS;
  return Math.max(
    1,
    Math.min(LONGEST_INTERVAL_MS, Math.floor(walSenderTimeoutMs / 4)),
  );
}

/** What decides when the next status update goes out. */
export interface StatusNeed {
  /** Milliseconds since the last update. */
  readonly sinceLast: number;
  readonly interval: number;
  /** The server may forget more than it was told. */
  readonly moved: boolean;
  /** The server asked for an answer. */
  readonly replyAsked: boolean;
}

/** Milliseconds until the next status update is due; 0 when it is now. */
export function statusDueIn({
  sinceLast,
  interval,
  moved,
  replyAsked,
}: StatusNeed): number {
  const gap = replyAsked ? REPLY_GAP_MS : moved ? MOVE_GAP_MS : interval;
  return Math.max(0, Math.min(gap, interval) - sinceLast);
}

/** Milliseconds between two stores of a position that no transaction carries. */
const ASKED_STORE_GAP_MS = 1_000;

/**
 * Milliseconds until a position may be stored by itself, which costs a write in the sink's database: once a status
 * interval, sooner when the server asks, since one that shuts down waits for it.
 */
export function storeDueIn(
  sinceLast: number,
  interval: number,
  replyAsked: boolean,
): number {
  return Math.max(
    0,
    (replyAsked ? Math.min(ASKED_STORE_GAP_MS, interval) : interval) -
      sinceLast,
  );
}
