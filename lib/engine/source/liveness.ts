const DEFAULT_TIMEOUT_MS = 60_000;
const SHORTEST_GRACE_MS = 1_000;
const LONGEST_GRACE_MS = 10_000;

/** What is known about the life of a connection. Times are milliseconds. */
export interface Pulse {
  /** Since the last bytes arrived, or since reading was resumed. */
  readonly silence: number;
  /** Since the server was asked for an answer that has not come; `null` when it was not asked. */
  readonly sinceProbe: number | null;
  /** `wal_sender_timeout` of the server; 0 when it is off. */
  readonly walSenderTimeoutMs: number;
  /** Reading is paused, so silence says nothing. */
  readonly paused: boolean;
}

/** What to do, and when to look again. */
export type LivenessAction =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'probe'; readonly ms: number }
  | { readonly kind: 'drop' };

/**
 * Judges a connection by its silence. A healthy server speaks at least every half of its timeout: after twice the
 * timeout it is asked for an answer, and when that does not come the connection is dead.
 */
export function judgeLiveness({
  silence,
  sinceProbe,
  walSenderTimeoutMs,
  paused,
}: Pulse): LivenessAction {
  const timeout =
    walSenderTimeoutMs === 0 ? DEFAULT_TIMEOUT_MS : walSenderTimeoutMs;
  const limit = timeout * 2;
  const grace = Math.min(
    LONGEST_GRACE_MS,
    Math.max(SHORTEST_GRACE_MS, timeout / 2),
  );
  if (paused) return { kind: 'wait', ms: limit };
  if (silence < limit) return { kind: 'wait', ms: limit - silence };
  if (sinceProbe === null) return { kind: 'probe', ms: grace };
  return sinceProbe < grace
    ? { kind: 'wait', ms: grace - sinceProbe }
    : { kind: 'drop' };
}
