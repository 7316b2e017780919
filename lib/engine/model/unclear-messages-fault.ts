import { ConnectionFault } from './connection-fault.js';
import type { Lsn } from './lsn.js';

/**
 * Ends a connection at a transaction that was sent while it ran, and of which the server does not say which messages were rolled back with a
 * savepoint. Sent when it has committed, it has none of them.
 */
export class UnclearMessagesFault extends ConnectionFault {
  /** @param commitLsn - of the transaction: up to here, the server has to be asked for whole transactions */
  constructor(readonly commitLsn: Lsn) {
    super(
      'the server does not say which messages of a transaction were rolled back: it is read again, as one that is sent when it has committed',
      0,
    );
  }
}
