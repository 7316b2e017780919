import { isUtf8 } from 'node:buffer';
import { type Lsn, parseLsn } from '../../model/lsn.js';
import type {
  BeginMessage,
  CommitMessage,
  LogicalMessage,
} from '../../model/replication-message.js';
import { MalformedMessage } from '../malformed-message.js';
import type { DocumentReader } from './document-reader.js';
import { parseTimestamp } from './timestamp.js';

/** What begin and commit say of their transaction. */
interface TransactionDocument {
  readonly xid: number;
  readonly commitTimeMicros: bigint;
  /** Start of the commit record. */
  readonly commitLsn: Lsn;
  /** End of the commit record. */
  readonly endLsn: Lsn;
}

/** Reads the rest of a begin document. */
export function readBegin(reader: DocumentReader): BeginMessage {
  const { commitLsn, commitTimeMicros, xid } = readTransaction(reader);
  return { kind: 'begin', finalLsn: commitLsn, commitTimeMicros, xid };
}

/** Reads the rest of a commit document. */
export function readCommit(reader: DocumentReader): CommitMessage {
  const { commitLsn, endLsn, commitTimeMicros } = readTransaction(reader);
  return { kind: 'commit', commitLsn, endLsn, commitTimeMicros };
}

/**
 * Reads the rest of a document about a logical decoding message. Its content may be any bytes, though the plugin ends it at the first zero.
 *
 * @param encoding - `latin1` when the text of the reader has a character for each byte
 */
export function readLogicalMessage(
  reader: DocumentReader,
  encoding: 'utf8' | 'latin1',
): LogicalMessage {
  reader.expect(',"xid":', 'the xid');
  if (!reader.takes('null')) reader.integer();
  reader.expect(',"timestamp":', 'the time');
  if (!reader.takes('null')) reader.skipString();
  const lsn = readLsn(reader, ',"lsn":');
  reader.expect(',"transactional":', 'what it belongs to');
  const transactional = reader.takes('true');
  if (!transactional) reader.expect('false', 'what it belongs to');
  reader.expect(',"prefix":', 'the prefix');
  const prefix = Buffer.from(reader.string(), encoding);
  if (!isUtf8(prefix)) throw new MalformedMessage('prefix is not UTF-8');
  reader.expect(',"content":', 'the content');
  const content = Buffer.from(reader.string(), encoding);
  reader.expect('}', 'the end');
  reader.end();
  return {
    kind: 'message',
    transactional,
    lsn,
    prefix: prefix.toString(),
    content,
  };
}

function readTransaction(reader: DocumentReader): TransactionDocument {
  reader.expect(',"xid":', 'the xid');
  const xid = reader.integer();
  if (xid < 0) throw new MalformedMessage('negative xid');
  reader.expect(',"timestamp":', 'the time');
  const commitTimeMicros = parseTimestamp(reader.string());
  if (commitTimeMicros === null) throw new MalformedMessage('no time');
  const commitLsn = readLsn(reader, ',"lsn":');
  const endLsn = readLsn(reader, ',"nextlsn":');
  reader.expect('}', 'the end');
  reader.end();
  return { xid, commitTimeMicros, commitLsn, endLsn };
}

/** None is invented where the plugin was not told to send them. */
function readLsn(reader: DocumentReader, member: string): Lsn {
  if (!reader.takes(member))
    throw new MalformedMessage('came without its LSN', 'decoder/lsn_missing');
  const lsn = parseLsn(reader.string());
  if (lsn === null) throw new MalformedMessage('no LSN');
  return lsn;
}
