import type { ErrorClass } from './error-classes.js';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
const SLOT_POLL_MS = 2_000;
const AUTHENTICATION_DELAY_MS = 60_000;
const QUICK_AUTHENTICATION_ATTEMPTS = 3;

/**
 * Milliseconds to wait before attempt number `attempt` + 1, with jitter so that instances do not march in step.
 *
 * @param attempt failed attempts in a row, from 1
 * @param random a number from 0 to 1, such as `Math.random()`
 */
export function retryDelay(
  errorClass: ErrorClass,
  attempt: number,
  random: number,
): number {
  if (errorClass === 'slot_active') return jittered(SLOT_POLL_MS, random);
  if (
    errorClass === 'authentication' &&
    attempt >= QUICK_AUTHENTICATION_ATTEMPTS
  ) {
    return AUTHENTICATION_DELAY_MS * (1 + random / 4);
  }
  const exponent = Math.min(attempt - 1, 16);
  return jittered(
    Math.min(FIRST_DELAY_MS * 2 ** exponent, LONGEST_DELAY_MS),
    random,
  );
}

/** Between half and all of the delay. */
function jittered(delay: number, random: number): number {
  return delay * (0.5 + random / 2);
}
