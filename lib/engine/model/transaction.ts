import type { Change, Tables } from './change.js';
import type { Lsn } from './lsn.js';
import type { Message } from './message.js';

/** A committed transaction, as a sink receives it. `JSON.stringify` prints positions as text, and changes that still arrive as `null`. */
export interface Transaction<T = Tables> {
  /** Name of the pipeline. */
  readonly pipeline: string;
  /** The replication slot that it came through. */
  readonly slotName: string;
  /** 32-bit transaction id; wraps around. */
  readonly xid: number;
  /** Start of the commit record. Ascends strictly; the key by which a sink recognises what it already applied. */
  readonly commitLsn: Lsn;
  /**
   * End of the commit record: the position the server is told once the transaction is durable. `null` while
   * {@link Transaction.changes} still arrive.
   */
  readonly commitEndLsn: Lsn | null;
  /** Time of the commit on the server, cut to milliseconds. */
  readonly commitTime: Date;
  /** Time of the commit in microseconds since 1970-01-01 UTC. */
  readonly commitTimeMicros: bigint;
  /**
   * In the order in which the statements ran; `for await` reads both forms.
   *
   * An array while the payload fits in 2 MiB and in the option `maxInflightBytes`. A larger transaction is handed over
   * while it arrives: the changes are then read once, at the pace of the handler, and before it settles. Reading them
   * throws when the connection is lost; let that error out, and the whole transaction comes again.
   *
   * @throws ChangesError when such changes are read a second time, or after the handler has settled
   */
  readonly changes: readonly Change<T>[] | AsyncIterable<Change<T>>;
  /**
   * Its transactional logical messages, when the option `messages` is on; otherwise the server is not asked for them. Their ordinals tell
   * where they stand among the changes. A transaction may have messages and no changes.
   *
   * While {@link Transaction.changes} arrive, messages arrive too: they are complete when the changes were read to the end. They are held
   * until then, and a transaction whose messages are larger than `maxInflightBytes` halts with `transaction_too_large`.
   */
  readonly messages: readonly Message[];
}
