import type {
  BeginMessage,
  CommitMessage,
  LogicalMessage,
  ReplicationMessage,
} from '../model/replication-message.js';
import { SchemaChangeFault } from '../model/schema-change-fault.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import type { Relation } from '../model/relation.js';
import type { Transaction } from '../model/transaction.js';
import type { Assembled, AssemblyFault } from './assembled.js';
import { AssembledMessage } from './assembled-message.js';
import { AssembledTransaction } from './assembled-transaction.js';
import {
  type ChangeMessage,
  type ContentMessage,
  OpenTransaction,
} from './open-transaction.js';
import { isOrdered, type PassOrder } from './pass-order.js';
import type { SchemaWatch } from './schema-watch.js';

export interface AssemblerOptions {
  readonly pipeline: string;
  readonly slotName: string;
  /** Payload bytes that a transaction holds at most until it is handed over while the rest arrives. */
  readonly maxTransactionBytes: number;
  /** Payload bytes that the messages of one transaction hold at most: they are not read while they arrive. */
  readonly maxMessageBytes: number;
  /** Whether the server was asked for messages. */
  readonly messages: boolean;
  /** Watermark of this connection: transactions that commit here or before were applied. */
  readonly skipThrough: Lsn | null;
  /** What is passed over although it was not applied. */
  readonly passOver: PassOrder | null;
  /** Compares the tables that are announced with those that are known. */
  readonly schema: SchemaWatch;
  /** A transaction that is read while it arrives holds less than before. */
  drained(): void;
}

/** Between Begin and Commit; without content when the transaction is left out. */
interface Current {
  readonly commitLsn: Lsn;
  readonly leftOut: 'applied' | 'ordered' | null;
  readonly content: OpenTransaction | null;
}

/**
 * Groups the messages of one connection into transactions. Protocol version 1 sends them one after the other, each
 * whole and in the order of their commits, and gives the commit position at Begin.
 */
export class Assembler {
  readonly #options: AssemblerOptions;
  readonly #schema: SchemaWatch;
  #current: Current | null = null;
  #lastCommitLsn: Lsn | null = null;
  #fault: AssemblyFault | null = null;

  constructor(options: AssemblerOptions) {
    this.#options = options;
    this.#schema = options.schema;
  }

  /** Whether a transaction has begun and not ended. */
  get open(): boolean {
    return this.#current !== null;
  }

  /** Payload bytes held for the open transaction, without those that are handed over already. */
  get openBytes(): number {
    return this.#current?.content?.bytes ?? 0;
  }

  /**
   * Feeds one message.
   *
   * @param bytes - size of the payload that it was decoded from
   * @returns what it gives, mostly `null`; after a fault the same fault for ever
   */
  accept(message: ReplicationMessage, bytes: number): Assembled | null {
    if (this.#fault !== null) return this.#fault;
    switch (message.kind) {
      case 'relation':
        this.#schema.announce(message.relation);
        return null;
      case 'aside':
      case 'type':
      case 'origin':
      case 'abort':
        return null;
      case 'begin':
        return this.#begin(message);
      case 'commit':
        return this.#commit(message);
      case 'message':
        return this.#takeMessage(message, bytes);
      default:
        return this.#add(message, bytes);
    }
  }

  /** See {@link SchemaWatch.goOnWith}. */
  goOnWith(relations: readonly Relation[]): void {
    this.#schema.goOnWith(relations);
  }

  /** Nothing more will be fed: who reads the open transaction is told. */
  cut(fault: ConnectionFault): void {
    this.#current?.content?.arrival?.fail(fault);
    this.#current = null;
  }

  #begin(message: BeginMessage): AssemblyFault | null {
    const { finalLsn } = message;
    if (this.#current !== null) return this.#violation('begin before commit');
    const last = this.#lastCommitLsn;
    if (last !== null && finalLsn <= last) {
      return this.#violation(
        `a transaction that commits at ${formatLsn(finalLsn)} after one at ${formatLsn(last)}`,
      );
    }
    const leftOut = this.#leaveOut(finalLsn);
    if (leftOut === null) this.#schema.begin();
    this.#current = {
      commitLsn: finalLsn,
      leftOut,
      content: leftOut === null ? new OpenTransaction(message) : null,
    };
    return null;
  }

  #takeMessage(message: LogicalMessage, bytes: number): Assembled | null {
    if (!this.#options.messages) {
      return this.#fail(
        'unsupported_message',
        'a message that was not asked for',
      );
    }
    if (message.transactional) return this.#add(message, bytes);
    // The server reads it out of the WAL when no transaction is being sent: each is sent whole, when its commit is read.
    if (this.#current !== null)
      return this.#violation('a message outside transactions before commit');
    const { lsn } = message;
    if (isOrdered(this.#options.passOver, 'message', lsn))
      return { kind: 'passed-over', endLsn: lsn };
    return {
      kind: 'message',
      message: new AssembledMessage(message, null),
      bytes,
    };
  }

  /** Why a transaction is not even held. */
  #leaveOut(commitLsn: Lsn): Current['leftOut'] {
    const { skipThrough, passOver } = this.#options;
    if (skipThrough !== null && commitLsn <= skipThrough) return 'applied';
    return isOrdered(passOver, 'transaction', commitLsn) ? 'ordered' : null;
  }

  #add(message: ContentMessage, bytes: number): Assembled | null {
    if (this.#current === null) {
      return this.#violation(`${message.kind} before begin`);
    }
    const { content } = this.#current;
    if (this.#schema.waiting && message.kind !== 'message') {
      const changed = this.#compare(message, this.#current);
      if (changed !== null) return changed;
    }
    if (content === null) return null;
    content.add(message, bytes);
    const { maxTransactionBytes, maxMessageBytes } = this.#options;
    if (content.messageBytes > maxMessageBytes) {
      return this.#fail(
        'transaction_too_large',
        `the messages of the transaction hold more than maxInflightBytes (${maxMessageBytes})`,
      );
    }
    return content.arrival === null && content.bytes > maxTransactionBytes
      ? this.#handOver(content)
      : null;
  }

  /** The first row after an announcement tells which tables it was for. */
  #compare(
    message: ChangeMessage,
    { commitLsn, leftOut }: Current,
  ): Assembled | null {
    const relations =
      message.kind === 'truncate' ? message.relations : [message.relation];
    if (leftOut !== null) {
      if (leftOut === 'applied') this.#schema.passOver(relations);
      else this.#schema.putOff(relations);
      return null;
    }
    const changes = this.#schema.meet(relations, commitLsn);
    if (changes.length === 0) return null;
    const fault = new SchemaChangeFault(changes, commitLsn);
    this.cut(fault);
    return { kind: 'schema-change', fault };
  }

  #handOver(content: OpenTransaction): Assembled {
    const arrival = content.handOver({
      drained: () => this.#options.drained(),
      readToEnd: (endLsn) => {
        transaction.commitEndLsn = endLsn;
      },
    });
    const transaction = this.#transaction(content, arrival.changes, null);
    const shapes = this.#schema.share();
    return { kind: 'arriving', transaction, arrival, shapes };
  }

  #commit(message: CommitMessage): Assembled {
    const { commitLsn, endLsn } = message;
    if (this.#current === null) return this.#violation('commit before begin');
    const { content, leftOut } = this.#current;
    if (commitLsn !== this.#current.commitLsn) {
      return this.#violation(
        `commit at ${formatLsn(commitLsn)} of a transaction that began for ${formatLsn(this.#current.commitLsn)}`,
      );
    }
    if (endLsn <= commitLsn) {
      return this.#violation('a commit that ends before it starts');
    }
    this.#current = null;
    this.#lastCommitLsn = commitLsn;
    if (leftOut === 'ordered') return { kind: 'passed-over', endLsn };
    if (content === null) return { kind: 'skipped', commitLsn, endLsn };
    if (content.arrival !== null) {
      this.#schema.end();
      content.arrival.end(endLsn);
      return { kind: 'arrived', end: endLsn };
    }
    if (content.empty) return { kind: 'empty', commitLsn, endLsn };
    return {
      kind: 'transaction',
      transaction: this.#transaction(content, content.changes, endLsn),
      changes: content.changes.length,
      bytes: content.bytes,
      end: endLsn,
      shapes: this.#schema.end(),
    };
  }

  #transaction(
    { begin, messages }: OpenTransaction,
    changes: Transaction['changes'],
    endLsn: Lsn | null,
  ): AssembledTransaction {
    const { pipeline, slotName } = this.#options;
    return new AssembledTransaction(
      pipeline,
      slotName,
      begin.xid,
      begin.finalLsn,
      endLsn,
      begin.commitTimeMicros,
      changes,
      messages,
    );
  }

  #violation(detail: string): AssemblyFault {
    return this.#fail('protocol_violation', detail);
  }

  /** Ends the work of this assembler and lets go of what it held. */
  #fail(code: AssemblyFault['code'], detail: string): AssemblyFault {
    const lsn = this.#current?.commitLsn;
    this.#fault = {
      kind: 'fault',
      code,
      detail,
      ...(lsn === undefined ? {} : { lsn }),
    };
    this.cut(new ConnectionFault('the stream cannot be followed further'));
    return this.#fault;
  }
}
