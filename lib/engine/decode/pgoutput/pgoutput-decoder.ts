import type { Decoded, DecodeFault, Decoder, TypesNeeded } from '../decoder.js';
import type { Relation } from '../../model/relation.js';
import type {
  RelationMessage,
  TypeMessage,
} from '../../model/replication-message.js';
import { ByteReader } from '../byte-reader.js';
import { faultOf } from '../malformed-message.js';
import {
  readDelete,
  readInsert,
  readTruncate,
  readUpdate,
} from './row-messages.js';
import { type ColumnTypes, rowLayout } from '../row-layout.js';
import { readNamespace, readRelationHeader } from './relation-message.js';
import { RowLayouts } from './row-layouts.js';
import { readStreamAbort } from './stream-messages.js';
import {
  readBegin,
  readCommit,
  readLogicalMessage,
  readOrigin,
} from './transaction-messages.js';

/** Messages of protocol version 1 by their first byte, as fault texts name them. */
const NAMES: ReadonlyMap<number, string> = new Map([
  [0x41, 'abort'], // A
  [0x42, 'begin'], // B
  [0x43, 'commit'], // C
  [0x44, 'delete'], // D
  [0x49, 'insert'], // I
  [0x4d, 'message'], // M
  [0x4f, 'origin'], // O
  [0x52, 'relation'], // R
  [0x54, 'truncate'], // T
  [0x55, 'update'], // U
  [0x59, 'type'], // Y
]);

/**
 * Reads the messages of the output plugin `pgoutput`, protocol version 1.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html | Logical Replication Message Formats}
 */
export class PgoutputDecoder implements Decoder {
  readonly #types: ColumnTypes;
  readonly #reader = new ByteReader();
  readonly #layouts = new RowLayouts();

  constructor(types: ColumnTypes) {
    this.#types = types;
  }

  get tables(): number {
    return this.#layouts.size;
  }

  beginScope(): void {
    this.#layouts.beginScope();
  }

  endScope(kept: ReadonlySet<number>): readonly Relation[] {
    return this.#layouts.endScope(kept);
  }

  decode(bytes: Buffer, start = 0, end = bytes.length): Decoded {
    if (start >= end) return fault('decode_failure', 'empty message');
    const reader = this.#reader;
    reader.open(bytes, start, end);
    const tag = reader.uint8();
    try {
      return this.#read(tag);
    } catch (error) {
      return faultOf(error, NAMES.get(tag) ?? 'message');
    }
  }

  #read(tag: number): Decoded {
    const reader = this.#reader;
    switch (tag) {
      case 0x49:
        return readInsert(reader, this.#layouts);
      case 0x55:
        return readUpdate(reader, this.#layouts);
      case 0x44:
        return readDelete(reader, this.#layouts);
      case 0x42:
        return readBegin(reader);
      case 0x43:
        return readCommit(reader);
      case 0x52:
        return this.#readRelation();
      case 0x59:
        return this.#readType();
      case 0x54:
        return readTruncate(reader, this.#layouts);
      case 0x4f:
        return readOrigin(reader);
      case 0x4d:
        return readLogicalMessage(reader);
      case 0x41: {
        const { xid, subxid } = readStreamAbort(reader);
        return { kind: 'abort', xid, subxid };
      }
      default:
        return fault(
          'unsupported_message',
          `unknown message tag 0x${tag.toString(16).padStart(2, '0')}`,
        );
    }
  }

  #readRelation(): RelationMessage | TypesNeeded {
    const header = readRelationHeader(this.#reader);
    const oids = this.#types.unresolved(
      header.columns.map(({ typeOid }) => typeOid),
    );
    if (oids.length > 0) return { kind: 'types-needed', oids };
    const layout = rowLayout(header, this.#types);
    this.#layouts.set(layout);
    return { kind: 'relation', relation: layout.relation };
  }

  #readType(): TypeMessage {
    const oid = this.#reader.uint32();
    const schema = readNamespace(this.#reader);
    const name = this.#reader.cstring();
    this.#reader.end();
    this.#types.announce(oid, schema, name);
    return { kind: 'type', oid, schema, name };
  }
}

function fault(code: DecodeFault['code'], detail: string): DecodeFault {
  return { kind: 'fault', code, detail };
}
