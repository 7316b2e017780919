import type { CheckpointContext, SinkCheckpoint } from '../model/checkpoint.js';
import type { Lsn } from '../model/lsn.js';
import type {
  SessionIdentity,
  SessionIdentityContext,
} from '../model/session-identity.js';
import type { SinkKind } from '../model/sink-kind.js';
import type { SlotOriginContext } from '../model/slot-origin.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import type { CaptureSet } from './capture/capture-set.js';

/** What the connect chain asks of a sink. */
export interface ConsultedSink {
  /** Class name, for messages. */
  readonly name: string;
  /** @default 'mirror' */
  readonly kind?: SinkKind;
  readonly checkpoint: SinkCheckpoint;
  readonly snapshotProgress?: (context: CheckpointContext) => unknown;
  readonly sessionIdentity?: (
    identity: SessionIdentity,
    context: SessionIdentityContext,
  ) => unknown;
  readonly slotOrigin?: (origin: Lsn, context: SlotOriginContext) => unknown;
}

/** A slot that this process has made for an initial snapshot which it did not finish, and could not drop. */
export interface UnfinishedSlot {
  /** Where it stands; `null` when there is none. */
  consistentPoint: Lsn | null;
}

/** What the connect chain works for. */
export interface ChainSubject {
  readonly pipeline: string;
  readonly options: ResolvedOptions;
  readonly capture: CaptureSet;
  readonly sink: ConsultedSink;
  readonly unfinishedSlot: UnfinishedSlot;
  /** Tells of something that a person should know, though nothing is lost. */
  warning(message: string): void;
}
