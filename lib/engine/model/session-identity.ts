import type { Lsn } from './lsn.js';

/**
 * Who answers on the replication connection.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-replication.html#PROTOCOL-REPLICATION-IDENTIFY-SYSTEM | IDENTIFY_SYSTEM}
 */
export interface SessionIdentity {
  /** Decimal text that is unique to the cluster and its physical copies. */
  readonly systemIdentifier: string;
  /** Counts promotions. */
  readonly timeline: number;
  /** How far the server has flushed its WAL. */
  readonly flushedLsn: Lsn;
  /** The database that the connection leads to. */
  readonly database: string;
}

/** What a sink is told beside the identity. */
export interface SessionIdentityContext {
  readonly pipeline: string;
  readonly slotName: string;
  readonly publications: readonly string[];
}
