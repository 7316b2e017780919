import type { Decoded, DecodeFault, Decoder } from '../decode/decoder.js';
import type { Lsn } from '../model/lsn.js';
import type { CatalogTable, TableName } from '../model/relation.js';
import type { ReplicationMessage } from '../model/replication-message.js';
import type {
  RowMessage,
  StreamWatch,
} from '../snapshot/incremental/stream-watch.js';

const TYPES_UNKNOWN: DecodeFault = {
  kind: 'fault',
  code: 'decode_failure',
  detail: 'types of a table are not known to the copy beside the stream',
};

/**
 * Tells a watch what the stream brings, as the server's text: it compares that with rows that were read, and what the option `types` makes
 * of values may not tell two of them apart. So messages are decoded a second time, as long as somebody watches.
 */
export class WatchedStream {
  readonly #watch: StreamWatch;
  readonly #decoder: Decoder;
  readonly #tableOf: (name: TableName) => CatalogTable | null;
  readonly #failed: (fault: DecodeFault) => void;

  /**
   * @param decoder - gives text, and knows nothing of the connection yet but types
   * @param tableOf - gives what the catalog has said of a table
   * @param failed - is told of a message that cannot be decoded a second time: rows that were read may be older than what it says
   */
  constructor(
    watch: StreamWatch,
    decoder: Decoder,
    tableOf: (name: TableName) => CatalogTable | null,
    failed: (fault: DecodeFault) => void,
  ) {
    this.#watch = watch;
    this.#decoder = decoder;
    this.#tableOf = tableOf;
    this.#failed = failed;
  }

  /** A message, before its transaction is handed over. */
  taken(
    message: ReplicationMessage,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    switch (message.kind) {
      case 'begin':
        this.#watch.begin(message);
        return;
      // Said once on a connection, and needed whenever watching begins.
      case 'aside':
      case 'relation':
      case 'type':
        this.#decode(bytes, start, end);
        return;
      case 'insert':
      case 'update':
      case 'delete':
      case 'truncate':
        if (this.#watch.active) this.#tell(this.#decode(bytes, start, end));
        return;
      case 'commit':
        this.#watch.ended();
        return;
      default:
    }
  }

  /** See {@link Decoder.beginScope}. */
  beginScope(): void {
    this.#decoder.scopes?.beginScope();
  }

  endScope(kept: ReadonlySet<number>): void {
    this.#decoder.scopes?.endScope(kept);
  }

  /** Its transaction is about to be handed over before its end is here. */
  arriving(): void {
    this.#watch.arriving();
  }

  /** A message, after its transaction was handed over. */
  passed(message: ReplicationMessage): void {
    if (message.kind === 'commit') this.#watch.commit(message);
  }

  /** What it needs was learned when the message was decoded the first time. */
  #decode(bytes: Buffer, start: number, end: number): Decoded {
    for (;;) {
      const decoded = this.#decoder.decode(bytes, start, end);
      switch (decoded.kind) {
        case 'table-needed':
          decoded.learn(this.#tableOf(decoded.name));
          break;
        case 'announced':
          break;
        case 'types-needed':
          this.#failed(TYPES_UNKNOWN);
          return decoded;
        case 'fault':
          this.#failed(decoded);
          return decoded;
        default:
          return decoded;
      }
    }
  }

  #tell(decoded: Decoded): void {
    if (isOfRows(decoded)) this.#watch.change(decoded);
  }

  /** The server told its position. */
  keepalive(position: Lsn): void {
    this.#watch.keepalive(position);
  }
}

function isOfRows(decoded: Decoded): decoded is RowMessage {
  return (
    decoded.kind === 'insert' ||
    decoded.kind === 'update' ||
    decoded.kind === 'delete' ||
    decoded.kind === 'truncate'
  );
}
