import type { Lsn } from '../model/lsn.js';
import type { Message } from '../model/message.js';
import type { Relation } from '../model/relation.js';
import type { SchemaChangeFault } from '../model/schema-change-fault.js';
import type { Transaction } from '../model/transaction.js';
import type { Arrival } from './arrival.js';

/** A stream that cannot be followed further. */
export interface AssemblyFault {
  readonly kind: 'fault';
  readonly code:
    'protocol_violation' | 'transaction_too_large' | 'unsupported_message';
  /** What happened: kinds of messages and positions, never a value. */
  readonly detail: string;
  /** Commit position of the transaction in which it happened; absent outside one. */
  readonly lsn?: Lsn;
}

/** What one message of the plugin gives: most give something at the end of a transaction only. */
export type Assembled =
  /** A transaction too large to be held: it is read while it arrives. */
  | {
      readonly kind: 'arriving';
      readonly transaction: Transaction;
      readonly arrival: Arrival;
      /** New shapes of tables in it; more follow until its end. */
      readonly shapes: readonly Relation[];
    }
  /** The end of such a transaction. */
  | { readonly kind: 'arrived'; readonly end: Lsn }
  | {
      readonly kind: 'transaction';
      readonly transaction: Transaction;
      /** Number of its changes. */
      readonly changes: number;
      /** Payload bytes of its changes and messages. */
      readonly bytes: number;
      readonly end: Lsn;
      /** New shapes of tables in it. */
      readonly shapes: readonly Relation[];
    }
  /** A logical message outside transactions. No watermark covers it: it has no commit. */
  | {
      readonly kind: 'message';
      readonly message: Message;
      /** Payload bytes. */
      readonly bytes: number;
    }
  /** The sink has to be asked before the open transaction can be read: nothing of it is held any more, and nothing may follow. */
  | { readonly kind: 'schema-change'; readonly fault: SchemaChangeFault }
  /** At or below the watermark: applied before. */
  | { readonly kind: 'skipped'; readonly commitLsn: Lsn; readonly endLsn: Lsn }
  /** Not applied, and passed over as ordered. */
  | { readonly kind: 'passed-over'; readonly endLsn: Lsn }
  /** Neither changes nor messages, such as when all of it was filtered. */
  | { readonly kind: 'empty'; readonly commitLsn: Lsn; readonly endLsn: Lsn }
  | AssemblyFault;
