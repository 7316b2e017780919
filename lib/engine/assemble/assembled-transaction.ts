import type { Change } from '../model/change.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import type { Message } from '../model/message.js';
import type { Transaction } from '../model/transaction.js';

/** A transaction of which all has arrived. */
export class AssembledTransaction implements Transaction {
  readonly commitTime: Date;

  constructor(
    readonly pipeline: string,
    readonly slotName: string,
    readonly xid: number,
    readonly commitLsn: Lsn,
    readonly commitEndLsn: Lsn,
    readonly commitTimeMicros: bigint,
    readonly changes: readonly Change[],
    readonly messages: readonly Message[],
  ) {
    this.commitTime = new Date(Number(commitTimeMicros / 1000n));
  }

  /** Gives positions and microseconds as text, because JSON has no bigint. */
  toJSON() {
    return {
      pipeline: this.pipeline,
      slotName: this.slotName,
      xid: this.xid,
      commitLsn: formatLsn(this.commitLsn),
      commitEndLsn: formatLsn(this.commitEndLsn),
      commitTime: this.commitTime,
      commitTimeMicros: String(this.commitTimeMicros),
      changes: this.changes,
      messages: this.messages,
    };
  }
}
