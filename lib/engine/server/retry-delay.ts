const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
const SHORTEST_POLL_MS = 1_000;
/** With the time that connecting takes, a slot that is free is taken within two seconds. */
const LONGEST_POLL_MS = 1_600;
const AUTHENTICATION_DELAY_MS = 60_000;
const QUICK_AUTHENTICATION_ATTEMPTS = 3;

/**
 * Milliseconds to wait after fault number `count` in a row, with jitter so that instances do not march in step.
 *
 * @param count from 1
 * @param random a number from 0 to 1, such as `Math.random()`
 */
export function backoffDelay(count: number, random: number): number {
  const exponent = Math.min(count - 1, 16);
  const delay = Math.min(FIRST_DELAY_MS * 2 ** exponent, LONGEST_DELAY_MS);
  return delay * (0.5 + random / 2);
}

/** Milliseconds after refused login number `count` in a row: from the third on more than a minute. */
export function authenticationDelay(count: number, random: number): number {
  return count < QUICK_AUTHENTICATION_ATTEMPTS
    ? backoffDelay(count, random)
    : AUTHENTICATION_DELAY_MS * (1 + random / 4);
}

/** Milliseconds until it is looked again whether the slot is free. */
export function pollDelay(random: number): number {
  return SHORTEST_POLL_MS + (LONGEST_POLL_MS - SHORTEST_POLL_MS) * random;
}
