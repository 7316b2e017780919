import type {
  LogicalMessage,
  OriginMessage,
} from '../../model/replication-message.js';
import type { ByteReader } from '../byte-reader.js';
import { MalformedMessage } from '../malformed-message.js';

const TRANSACTIONAL = 1;

export function readOrigin(reader: ByteReader): OriginMessage {
  const lsn = reader.uint64();
  const name = reader.cstring();
  reader.end();
  return { kind: 'origin', lsn, name };
}

export function readLogicalMessage(reader: ByteReader): LogicalMessage {
  const flags = reader.uint8();
  if (flags > TRANSACTIONAL) throw new MalformedMessage('unknown flags');
  const lsn = reader.uint64();
  const prefix = reader.cstring();
  const content = reader.copy(reader.length());
  reader.end();
  return {
    kind: 'message',
    transactional: flags === TRANSACTIONAL,
    lsn,
    prefix,
    content,
  };
}
