import type {
  CatalogTable,
  Relation,
  TableName,
} from '../../model/relation.js';
import type { OriginMessage } from '../../model/replication-message.js';
import { TypeTable } from '../../values/type-table.js';
import { ByteReader } from '../byte-reader.js';
import type {
  Decoded,
  DecodeFault,
  Decoder,
  TableNeeded,
  TypesNeeded,
} from '../decoder.js';
import { faultOf } from '../malformed-message.js';
import { type ColumnTypes, rowLayout } from '../row-layout.js';
import { readBegin, readCommit } from '../transaction-messages.js';
import { announcedTable, UNKNOWN_TYPE } from './announced-table.js';
import { readFlags, readTerminated } from './fields.js';
import { isQueue, queueTable, truncatedTable } from './queue.js';
import { readWireTable } from './relation-message.js';
import { readDelete, readInsert, readUpdate } from './row-messages.js';
import { readStartup } from './startup-message.js';
import { type WireLayout, wireLayout } from './wire-layout.js';

const STARTUP = 0x53; // S

/** Messages of protocol version 1 by their first byte, as fault texts name them. */
const NAMES: ReadonlyMap<number, string> = new Map([
  [0x42, 'begin'], // B
  [0x43, 'commit'], // C
  [0x44, 'delete'], // D
  [0x49, 'insert'], // I
  [0x4f, 'origin'], // O
  [0x52, 'relation'], // R
  [STARTUP, 'startup'],
  [0x55, 'update'], // U
]);

/** What the catalog said of the table that the payload is about. */
interface Answer {
  readonly name: TableName;
  readonly table: CatalogTable | null;
}

/**
 * Reads the messages of the output plugin `pglogical_output`, native protocol version 1.
 *
 * @see {@link https://github.com/2ndQuadrant/pglogical/blob/REL2_x_STABLE/internals-doc/protocol.txt | Protocol of pglogical}
 */
export class PglogicalDecoder implements Decoder {
  readonly #types: ColumnTypes;
  /** Of the queue. */
  readonly #texts = new TypeTable('text');
  readonly #reader = new ByteReader();
  /** What is known of tables beside the message that announces them, by OID. */
  readonly #known: Map<number, CatalogTable>;
  readonly #layouts = new Map<number, WireLayout>();
  #queue: Relation | null = null;
  /** Until the payload that asked for it is read. */
  #answer: Answer | null = null;
  #started = false;
  /** The last message was Begin. */
  #begun = false;

  /** @param tables - what the catalog said when the connection began */
  constructor(types: ColumnTypes, tables: readonly CatalogTable[]) {
    this.#types = types;
    types.announce(UNKNOWN_TYPE, 'pg_catalog', 'unknown');
    this.#known = new Map(tables.map((table) => [table.oid, table]));
  }

  readonly scopes = null;
  /** It announces what has changed. */
  readonly review = null;

  get tables(): number {
    return this.#layouts.size;
  }

  decode(bytes: Buffer, start = 0, end = bytes.length): Decoded {
    const decoded = this.#decode(bytes, start, end);
    this.#begun = decoded.kind === 'begin';
    return decoded;
  }

  #decode(bytes: Buffer, start: number, end: number): Decoded {
    // The plugin leaves the message empty when the origin was dropped since.
    if (start >= end && this.#begun) {
      return { kind: 'origin', lsn: 0n, name: '' };
    }
    if (start >= end) return fault('decode_failure', 'empty message');
    const reader = this.#reader;
    reader.open(bytes, start, end);
    const tag = reader.uint8();
    const name = NAMES.get(tag);
    if (name === undefined) {
      return fault(
        'unsupported_message',
        `unknown message tag 0x${tag.toString(16).padStart(2, '0')}`,
      );
    }
    if (!this.#started && tag !== STARTUP) {
      return fault('protocol_violation', `${name} before startup`);
    }
    try {
      return this.#read(tag);
    } catch (error) {
      return faultOf(error, name);
    }
  }

  #read(tag: number): Decoded {
    const reader = this.#reader;
    switch (tag) {
      case 0x49:
        return this.#readInsert();
      case 0x55:
        return readUpdate(reader, this.#layouts);
      case 0x44:
        return readDelete(reader, this.#layouts);
      case 0x42:
        readFlags(reader);
        return readBegin(reader);
      case 0x43:
        return readCommit(reader);
      case 0x52:
        return this.#readRelation();
      case 0x4f:
        return this.#readOrigin();
      default: {
        const message = readStartup(reader);
        this.#started = true;
        return message;
      }
    }
  }

  #readOrigin(): OriginMessage {
    const reader = this.#reader;
    readFlags(reader);
    const lsn = reader.uint64();
    const name = readTerminated(reader, reader.uint8());
    reader.end();
    return { kind: 'origin', lsn, name };
  }

  /**
   * The catalog is asked each time, because the server describes a table again when something about it changed, and
   * what changed may be a type, which it does not say.
   */
  #readRelation(): Decoded {
    const wire = readWireTable(this.#reader);
    if (isQueue(wire)) {
      const layout = wireLayout(wire, queueTable(wire), this.#texts);
      this.#keep(layout);
      this.#queue = layout.relation;
      return { kind: 'aside' };
    }
    const answer = this.#answerFor(wire);
    if (answer === null) return this.#tableNeeded(wire);
    const table = announcedTable(wire, this.#sources(wire.oid, answer));
    const needed = this.#typesNeeded(table);
    if (needed !== null) return needed;
    const layout = wireLayout(wire, table, this.#types);
    this.#answer = null;
    this.#known.set(wire.oid, table);
    this.#keep(layout);
    return { kind: 'relation', relation: layout.relation };
  }

  /** What tells of a table that was announced, the newest first. Another table may have its name by now. */
  #sources(oid: number, { table }: Answer): readonly CatalogTable[] {
    return [table, this.#known.get(oid)].flatMap((source) =>
      source?.oid === oid ? [source] : [],
    );
  }

  /** The table that was announced last is the last. */
  #keep(layout: WireLayout): void {
    const { oid } = layout.relation;
    this.#layouts.delete(oid);
    this.#layouts.set(oid, layout);
  }

  #readInsert(): Decoded {
    const insert = readInsert(this.#reader, this.#layouts);
    if (insert.relation !== this.#queue) return insert;
    const truncated = truncatedTable(insert.record);
    return truncated === null ? { kind: 'aside' } : this.#truncate(truncated);
  }

  /** A table that was not announced so far is told as it is now: that it was truncated announces nothing. */
  #truncate(name: TableName): Decoded {
    const layout = [...this.#layouts.values()].findLast(({ relation }) =>
      isNamed(relation, name),
    );
    if (layout !== undefined) return truncation(layout.relation);
    const answer = this.#answerFor(name);
    if (answer === null) return this.#tableNeeded(name);
    const table = answer.table ?? goneTable(name);
    const needed = this.#typesNeeded(table);
    if (needed !== null) return needed;
    this.#answer = null;
    return truncation(rowLayout(table, this.#types).relation);
  }

  #answerFor(name: TableName): Answer | null {
    const answer = this.#answer;
    return answer !== null && isNamed(answer.name, name) ? answer : null;
  }

  #tableNeeded({ schema, table }: TableName): TableNeeded {
    const name = { schema, table };
    return {
      kind: 'table-needed',
      name,
      learn: (answered) => {
        this.#answer = { name, table: answered };
      },
    };
  }

  #typesNeeded({ columns }: CatalogTable): TypesNeeded | null {
    const all = columns.map(({ typeOid }) => typeOid);
    const oids = new Set([
      ...this.#types.unnamed(all),
      ...this.#types.unresolved(all),
    ]);
    return oids.size === 0 ? null : { kind: 'types-needed', oids: [...oids] };
  }
}

function isNamed(one: TableName, other: TableName): boolean {
  return one.schema === other.schema && one.table === other.table;
}

function goneTable({ schema, table }: TableName): CatalogTable {
  return {
    oid: 0,
    schema,
    table,
    replicaIdentity: 'nothing',
    columns: [],
    generated: [],
  };
}

function truncation(relation: Relation): Decoded {
  return {
    kind: 'truncate',
    relations: [relation],
    cascade: false,
    restartIdentity: false,
  };
}

function fault(code: DecodeFault['code'], detail: string): DecodeFault {
  return { kind: 'fault', code, detail };
}
