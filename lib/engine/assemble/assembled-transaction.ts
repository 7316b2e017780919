import type { Change } from '../model/change.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import type { Message } from '../model/message.js';
import type { Transaction } from '../model/transaction.js';

/** A transaction that is handed over: whole, or while it arrives. */
export class AssembledTransaction implements Transaction {
  readonly commitTime: Date;

  constructor(
    readonly pipeline: string,
    readonly slotName: string,
    readonly xid: number,
    readonly commitLsn: Lsn,
    /** Set when the end has arrived and was read. */
    public commitEndLsn: Lsn | null,
    readonly commitTimeMicros: bigint,
    readonly changes: readonly Change[] | AsyncIterable<Change>,
    readonly messages: readonly Message[],
  ) {
    this.commitTime = new Date(Number(commitTimeMicros) / 1000);
  }

  /**
   * Gives positions and microseconds as text, because JSON has no bigint; and `null` for changes that still arrive.
   */
  toJSON() {
    return {
      pipeline: this.pipeline,
      slotName: this.slotName,
      xid: this.xid,
      commitLsn: formatLsn(this.commitLsn),
      commitEndLsn:
        this.commitEndLsn === null ? null : formatLsn(this.commitEndLsn),
      commitTime: this.commitTime,
      commitTimeMicros: String(this.commitTimeMicros),
      changes: Symbol.asyncIterator in this.changes ? null : this.changes,
      messages: this.messages,
    };
  }
}
