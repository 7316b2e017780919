import { type Lsn, parseLsn } from '../../model/lsn.js';
import type {
  BeginMessage,
  CommitMessage,
  LogicalMessage,
} from '../../model/replication-message.js';
import { MalformedMessage } from '../malformed-message.js';
import type { DocumentReader } from './document-reader.js';
import { type Literal, literal } from './literal.js';
import { parseTimestamp } from './timestamp.js';

const XID = literal(',"xid":');
const TIMESTAMP = literal(',"timestamp":');
const LSN = literal(',"lsn":');
const NEXT_LSN = literal(',"nextlsn":');
const TRANSACTIONAL = literal(',"transactional":');
const PREFIX = literal(',"prefix":');
const CONTENT = literal(',"content":');
const BRACE = literal('}');
const NULL = literal('null');
const TRUE = literal('true');
const FALSE = literal('false');

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

/** Reads the rest of a document about a logical decoding message. Its content may be any bytes, but the plugin ends it at the first zero. */
export function readLogicalMessage(reader: DocumentReader): LogicalMessage {
  reader.expect(XID, 'the xid');
  if (!reader.takes(NULL)) reader.integer();
  reader.expect(TIMESTAMP, 'the time');
  if (!reader.takes(NULL)) reader.skipString();
  const lsn = readLsn(reader, LSN);
  reader.expect(TRANSACTIONAL, 'what it belongs to');
  const transactional = reader.takes(TRUE);
  if (!transactional) reader.expect(FALSE, 'what it belongs to');
  reader.expect(PREFIX, 'the prefix');
  const prefix = reader.name();
  reader.expect(CONTENT, 'the content');
  const content = reader.bytes();
  reader.expect(BRACE, 'the end');
  reader.end();
  return {
    kind: 'message',
    transactional,
    lsn,
    prefix,
    content,
  };
}

function readTransaction(reader: DocumentReader): TransactionDocument {
  reader.expect(XID, 'the xid');
  const xid = reader.integer();
  if (xid < 0) throw new MalformedMessage('negative xid');
  reader.expect(TIMESTAMP, 'the time');
  const commitTimeMicros = parseTimestamp(reader.string());
  if (commitTimeMicros === null) throw new MalformedMessage('no time');
  const commitLsn = readLsn(reader, LSN);
  const endLsn = readLsn(reader, NEXT_LSN);
  reader.expect(BRACE, 'the end');
  reader.end();
  return { xid, commitTimeMicros, commitLsn, endLsn };
}

/** None is invented where the plugin was not told to send them. */
function readLsn(reader: DocumentReader, member: Literal): Lsn {
  if (!reader.takes(member))
    throw new MalformedMessage('came without its LSN', 'decoder/lsn_missing');
  const lsn = parseLsn(reader.string());
  if (lsn === null) throw new MalformedMessage('no LSN');
  return lsn;
}
