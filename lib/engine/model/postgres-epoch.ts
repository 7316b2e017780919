/** 2000-01-01 UTC, from which PostgreSQL counts time, in microseconds since 1970-01-01 UTC. */
export const POSTGRES_EPOCH_MICROS = 946_684_800_000_000n;
