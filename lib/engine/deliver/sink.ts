import type { SinkCheckpoint } from '../model/checkpoint.js';
import type { Lsn } from '../model/lsn.js';
import type {
  SchemaChange,
  SchemaChangeContext,
} from '../model/schema-change.js';
import type {
  SessionIdentity,
  SessionIdentityContext,
} from '../model/session-identity.js';
import type { SinkKind } from '../model/sink-kind.js';
import type { SlotOriginContext } from '../model/slot-origin.js';
import type { Transaction } from '../model/transaction.js';

/**
 * What a pipeline delivers to. A promise that resolves says yes, or that its work is durable; results are typed
 * `unknown` because a method written in JavaScript may return anything; only a promise is accepted.
 */
export interface Sink {
  /** Class name, for messages. */
  readonly name: string;
  /** @default 'mirror' */
  readonly kind?: SinkKind;
  readonly checkpoint: SinkCheckpoint;
  /** Applies one transaction. */
  transaction(transaction: Transaction): unknown;
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
