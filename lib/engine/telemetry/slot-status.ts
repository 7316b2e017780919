/** A transaction on the source that keeps WAL, whatever is confirmed. */
export interface WalHolder {
  /** Process id of its session; `null` for a prepared transaction. */
  readonly pid: number | null;
  /** Name of a prepared transaction, of at most 100 printable characters; `null` for one of a session. */
  readonly gid: string | null;
  /** Of its session, of at most 100 printable characters. */
  readonly applicationName: string | null;
  /** Seconds since it began; where the role of the connection may not see that, since it was first seen. */
  readonly ageSeconds: number;
}

/**
 * What the source says of the slot, ready for JSON. Facts that were not found are `null`.
 *
 * @see {@link https://www.postgresql.org/docs/current/view-pg-replication-slots.html | pg_replication_slots}
 */
export interface SlotStatus {
  /** `unknown` when the last question was not answered; see `reason`. */
  readonly state: 'present' | 'missing' | 'unknown';
  /** When the server answered last, ISO 8601; `null` when it never did. */
  readonly checkedAt: string | null;
  /** Why the slot is unknown: a class of error or a SQLSTATE. */
  readonly reason: string | null;
  /** Whether some process streams from it. */
  readonly active: boolean | null;
  /** Process id on the server of the session that streams from it. */
  readonly activePid: number | null;
  /**
   * Whether the server sends nothing because standbys named in `synchronized_standby_slots` have not confirmed it yet: no lag of the
   * consumer.
   *
   * @see {@link https://www.postgresql.org/docs/current/runtime-config-replication.html#GUC-SYNCHRONIZED-STANDBY-SLOTS | synchronized_standby_slots}
   */
  readonly waitsForStandby: boolean | null;
  /** What the server will do with the WAL that the slot needs: `unreserved` may be lost at the next checkpoint, `lost` is. */
  readonly walStatus: string | null;
  /** Why the server has given the slot up. */
  readonly invalidationReason: string | null;
  /** End of the server's WAL; on a standby, of what it has replayed. */
  readonly walEndLsn: string | null;
  /** Bytes of WAL that the server keeps for the slot: from the oldest transaction it still needs to the end. */
  readonly retainedWalBytes: number | null;
  /** Bytes of WAL that are not confirmed. The rest of what is retained is held by `heldBy` and not by the consumer. */
  readonly lagBytes: number | null;
  /** Bytes of WAL that can still be written before the slot may be lost; `null` too where `max_slot_wal_keep_size` is not set. */
  readonly safeWalBytes: number | null;
  /** The same as a part of `max_slot_wal_keep_size`, from 0 to 1. */
  readonly safeWalFraction: number | null;
  /** Seconds until nothing of that is left, if the slot stays where it is and WAL is written as between the last two answers. */
  readonly secondsToLoss: number | null;
  /** The oldest transaction, when it has run for ten seconds and WAL is kept that is confirmed. */
  readonly heldBy: WalHolder | null;
}
