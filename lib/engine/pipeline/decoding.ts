import type { DecodeFault, Decoder, Needed } from '../decode/decoder.js';
import type { CatalogTable, Relation, TableName } from '../model/relation.js';
import type {
  BeginMessage,
  ReplicationMessage,
} from '../model/replication-message.js';
import { tableKey } from '../model/snapshot-progress.js';
import type { TypesOption } from '../options/pipeline-options.js';
import { type TypeCatalog, teachTypes } from '../server/type-catalog.js';
import type { StreamWatch } from '../snapshot/incremental/stream-watch.js';
import { TypeTable } from '../values/type-table.js';
import type { CatalogState } from './catalog-guard.js';
import { WatchedStream } from './watched-stream.js';

/** What a plugin does not say. */
export interface Catalog extends TypeCatalog {
  /** `null` for a table that is gone. */
  readTable(name: TableName): Promise<CatalogTable | null>;
}

/** What decoding asks of its connection. */
export interface DecodingPorts {
  /** Makes the decoder of the output plugin. */
  makeDecoder(types: TypeTable): Decoder;
  /** Asked while nothing is read. */
  readonly catalog: Catalog;
}

/** What becomes of payloads. */
export interface DecodedPort {
  /** The message, and the payload that it was decoded from. */
  message(
    message: ReplicationMessage,
    bytes: Buffer,
    start: number,
    end: number,
  ): void;
  fault(fault: DecodeFault): void;
}

/** Reads what an output plugin writes on one connection, and asks the catalog for what it does not say. */
export class Decoding {
  readonly #ports: DecodingPorts;
  readonly #types: TypeTable;
  #made: Decoder | null = null;
  /** What the catalog has said of tables, the last of each name. */
  readonly #tables = new Map<string, CatalogTable | null>();
  /** What the catalog says of all tables, until the stream is there. */
  #review: CatalogState | null = null;

  constructor(types: TypesOption, ports: DecodingPorts) {
    this.#ports = ports;
    this.#types = new TypeTable(types);
  }

  /** Made when the first payload is decoded: what is known of tables is read when the stream has begun. */
  get #decoder(): Decoder {
    return (this.#made ??= this.#ports.makeDecoder(this.#types));
  }

  /** Number of the tables that were announced. */
  get tables(): number {
    return this.#decoder.tables;
  }

  /**
   * Decodes the payload from `start` to `end`.
   *
   * @returns what has to be {@link Decoding.ask | asked} before it can be decoded; `null` when it was
   */
  feed(
    bytes: Buffer,
    start: number,
    end: number,
    port: DecodedPort,
  ): Needed | null {
    for (;;) {
      const decoded = this.#decoder.decode(bytes, start, end);
      switch (decoded.kind) {
        case 'announced':
          port.message(
            { kind: 'relation', relation: decoded.relation },
            bytes,
            start,
            end,
          );
          break;
        case 'types-needed':
        case 'table-needed':
          return decoded;
        case 'fault':
          port.fault(decoded);
          return null;
        default:
          port.message(decoded, bytes, start, end);
          return null;
      }
    }
  }

  async ask(needed: Needed): Promise<void> {
    const { catalog } = this.#ports;
    if (needed.kind === 'types-needed')
      return teachTypes(this.#types, needed.oids, catalog);
    const table = await catalog.readTable(needed.name);
    this.#tables.set(tableKey(needed.name), table);
    needed.learn(table);
  }

  /** What the catalog says of the tables counts for transactions that commit behind the position as of which it was so. */
  review(state: CatalogState): void {
    this.#review = state;
  }

  /** @returns `tables-gone` from where on a plugin that goes by names sends nothing of one */
  begin({ finalLsn }: BeginMessage): 'tables-gone' | null {
    const due = this.#review;
    if (due === null || finalLsn <= due.asOf) return null;
    this.#review = null;
    if (due.lacksTables) return 'tables-gone';
    this.#decoder.review?.(due.tables);
    return null;
  }

  /** See {@link DecoderScopes.beginScope}. */
  beginScope(): void {
    this.#decoder.scopes?.beginScope();
  }

  endScope(kept: ReadonlySet<number>): readonly Relation[] {
    return this.#decoder.scopes?.endScope(kept) ?? [];
  }

  /**
   * Lets somebody see the stream as text.
   *
   * @param failed - is told what they could not be shown
   */
  watchedBy(
    watch: StreamWatch,
    failed: (fault: DecodeFault) => void,
  ): WatchedStream {
    return new WatchedStream(
      watch,
      this.#ports.makeDecoder(new TypeTable('text', this.#types)),
      (name) => this.#tables.get(tableKey(name)) ?? null,
      failed,
    );
  }
}
