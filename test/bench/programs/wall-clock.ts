/** Microseconds between the epoch of the system and that of PostgreSQL, 2000-01-01 UTC. */
export const POSTGRES_EPOCH_MICROS = 946_684_800_000_000n;

/**
 * A clock of the system's time in microseconds since 1970-01-01 UTC. `Date` ticks in milliseconds only, so a finer clock
 * is set by the moment of a tick.
 */
export function wallClock(): () => number {
  const before = Date.now();
  let tick = before;
  while (tick === before) tick = Date.now();
  const offset = tick - performance.now();
  return () => (performance.now() + offset) * 1000;
}
