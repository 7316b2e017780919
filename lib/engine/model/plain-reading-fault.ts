import { ConnectionFault } from './connection-fault.js';
import { formatLsn, type Lsn } from './lsn.js';

/**
 * Ends a connection at a transaction that was sent while it ran and has to be read once more, sent whole: savepoints of it were rolled
 * back, and the server does not say which, or not which of its messages were.
 */
export class PlainReadingFault extends ConnectionFault {
  /** @param commitLsn - of the transaction */
  constructor(readonly commitLsn: Lsn) {
    super(
      `the server does not tell all that was rolled back of the transaction at ${formatLsn(commitLsn)}, so it is read once more without streaming`,
      0,
    );
  }
}
