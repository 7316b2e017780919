import type { Lsn } from '../../model/lsn.js';
import type {
  BeginMessage,
  CommitMessage,
  DeleteMessage,
  InsertMessage,
  TruncateMessage,
  UpdateMessage,
} from '../../model/replication-message.js';

/** A message by which rows change. */
export type RowMessage =
  InsertMessage | UpdateMessage | DeleteMessage | TruncateMessage;

/**
 * Is told what the stream brings, in its order and as soon as it is received, before it is handed over. Records hold the server's text of
 * every value, whatever the option `types` says.
 */
export interface StreamWatch {
  /** Whether it wants to be told of rows. */
  readonly active: boolean;
  /** Everything that commits below `finalLsn` was received. */
  begin(message: BeginMessage): void;
  change(message: RowMessage): void;
  /** The transaction that was begun is about to be handed over before its end is received. */
  arriving(): void;
  /** Its end was received, and it is about to be handed over if it was not. */
  ended(): void;
  /** It was handed over. */
  commit(message: CommitMessage): void;
  /** The server told its position. Outside a transaction, everything that commits below was received. */
  keepalive(position: Lsn): void;
}
