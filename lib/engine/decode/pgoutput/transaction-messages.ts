import type {
  BeginMessage,
  CommitMessage,
  LogicalMessage,
  OriginMessage,
} from '../../model/replication-message.js';
import type { ByteReader } from '../byte-reader.js';
import { POSTGRES_EPOCH_MICROS } from '../../model/postgres-epoch.js';
import { MalformedMessage } from '../malformed-message.js';

const TRANSACTIONAL = 1;

export function readBegin(reader: ByteReader): BeginMessage {
  const finalLsn = reader.uint64();
  const commitTimeMicros = readTime(reader);
  const xid = reader.uint32();
  reader.end();
  return { kind: 'begin', finalLsn, commitTimeMicros, xid };
}

export function readCommit(reader: ByteReader): CommitMessage {
  reader.skip(1); // flags, of which none is defined
  const commitLsn = reader.uint64();
  const endLsn = reader.uint64();
  const commitTimeMicros = readTime(reader);
  reader.end();
  return { kind: 'commit', commitLsn, endLsn, commitTimeMicros };
}

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

/** Microseconds since 1970-01-01 UTC. */
export function readTime(reader: ByteReader): bigint {
  return reader.int64() + POSTGRES_EPOCH_MICROS;
}
