import type { CheckpointContext, SinkCheckpoint } from '../model/checkpoint.js';
import type { Lsn } from '../model/lsn.js';
import type { Message, MessageContext } from '../model/message.js';
import type {
  SchemaChange,
  SchemaChangeContext,
} from '../model/schema-change.js';
import type {
  SessionIdentity,
  SessionIdentityContext,
} from '../model/session-identity.js';
import type { SinkKind } from '../model/sink-kind.js';
import type {
  AnySnapshotRow,
  SnapshotCheckpoint,
  SnapshotContext,
} from '../model/snapshot.js';
import type { SlotOriginContext } from '../model/slot-origin.js';
import type { Transaction } from '../model/transaction.js';

/**
 * What a sink offers. A promise that resolves says yes, or that its work is durable; results are typed
 * `unknown` because a method written in JavaScript may return anything; only a promise is accepted.
 */
export interface SinkMethods {
  /** Class name, for messages. */
  readonly name: string;
  /** @default 'mirror' */
  readonly kind?: SinkKind;
  /** Applies one transaction. Needed unless the option `batchDelivery` is given. */
  transaction?(transaction: Transaction): unknown;
  /** Applies several, in ascending order of their commits. Needed by the option `batchDelivery`. */
  batch?(transactions: readonly Transaction[]): unknown;
  /** Tables without which it has nothing to do, as `change.relation` has them: the pipeline tells when no publication carries one. */
  readonly tables?: readonly string[];
  /** Takes messages outside transactions. Needed by the option `messages`. */
  readonly message?: MessageHandler;
  /** Takes rows that exist already. Needed by the option `snapshot`. */
  readonly snapshot?: (
    rows: readonly AnySnapshotRow[],
    context: SnapshotContext,
  ) => unknown;
  /** Told when an initial snapshot is done; stores the position behind it unless the library does. */
  readonly snapshotComplete?: (checkpoint: SnapshotCheckpoint) => unknown;
  /** Reads what {@link SnapshotContext.progress} was stored last, for a sink that stores it by itself. */
  readonly snapshotProgress?: (context: CheckpointContext) => unknown;
  /** Asked on every connect, before the checkpoint is read, whether this is the right server. */
  readonly sessionIdentity?: (
    identity: SessionIdentity,
    context: SessionIdentityContext,
  ) => unknown;
  /** Asked on every connect whether the stream may begin at this position. */
  readonly slotOrigin?: (origin: Lsn, context: SlotOriginContext) => unknown;
  /** Asked, while no other method runs, whether the sink can go on with a destructive change. */
  readonly schemaChange?: (
    change: SchemaChange,
    context: SchemaChangeContext,
  ) => unknown;
}

/** Takes messages that belong to no transaction. */
export interface MessageHandler {
  /** Whether a message with this prefix concerns the sink. */
  takes(prefix: string): boolean;
  handle(message: Message, context: MessageContext): unknown;
}

/** A sink as it is attached: without a checkpoint when the library keeps it (option `checkpointStore`). */
export interface AttachedSink extends SinkMethods {
  readonly checkpoint?: SinkCheckpoint;
}

/** What a pipeline delivers to. */
export interface Sink extends SinkMethods {
  readonly checkpoint: SinkCheckpoint;
}
