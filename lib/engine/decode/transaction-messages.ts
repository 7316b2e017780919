import { POSTGRES_EPOCH_MICROS } from '../model/postgres-epoch.js';
import type {
  BeginMessage,
  CommitMessage,
} from '../model/replication-message.js';
import type { ByteReader } from './byte-reader.js';

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

/** Microseconds since 1970-01-01 UTC. */
export function readTime(reader: ByteReader): bigint {
  return reader.int64() + POSTGRES_EPOCH_MICROS;
}
