import type { MessageHandler } from '../../lib/engine/deliver/sink.js';
import { type Lsn, parseLsn } from '../../lib/engine/model/lsn.js';
import type { Message } from '../../lib/engine/model/message.js';
import { capture, type Capture, type CaptureOptions } from './capture.js';
import { present } from './present.js';
import type { SourceAndTarget } from './source-and-target.js';

/** Runs SQL and gives rows: a database, or one of its connections. */
interface Emitter {
  query(
    sql: string,
    values: unknown[],
  ): Promise<unknown[] | { rows: unknown[] }>;
}

/** Writes a message outside transactions, and gives what the server says of its position. */
export function emit(
  on: Emitter,
  prefix: string,
  content: string | Buffer = '',
): Promise<Lsn> {
  return write(on, false, prefix, content);
}

/** Writes a message that belongs to the running transaction, or is one of its own. */
export function emitInTransaction(
  on: Emitter,
  prefix: string,
  content: string | Buffer = '',
): Promise<Lsn> {
  return write(on, true, prefix, content);
}

async function write(
  on: Emitter,
  transactional: boolean,
  prefix: string,
  content: string | Buffer,
): Promise<Lsn> {
  const answer = await on.query(
    'select pg_logical_emit_message($1, $2::text, $3::bytea) as lsn',
    [transactional, prefix, Buffer.from(content)],
  );
  const [row] = Array.isArray(answer) ? answer : answer.rows;
  if (typeof row !== 'object' || row === null || !('lsn' in row))
    throw new Error('The server gave no position.');
  return present(parseLsn(String(row.lsn)) ?? undefined);
}

/** What a sink does with a message after it was kept, and before it is done. */
type Work = (message: Message) => Promise<void>;

/** A handler of messages of every prefix that keeps what it is given. */
export interface KeepingHandler extends MessageHandler {
  /** Every call, in order. */
  readonly calls: Message[];
}

export function keepingHandler(work: Work = async () => {}): KeepingHandler {
  const calls: Message[] = [];
  return {
    calls,
    takes: () => true,
    async handle(message) {
      calls.push(message);
      await work(message);
    },
  };
}

/** A pipeline that asks for messages, over two databases. */
export interface Taking extends Capture, SourceAndTarget {
  readonly message: KeepingHandler;
}

export interface TakingOptions extends Partial<CaptureOptions> {
  readonly work?: Work;
}

export function taking(
  { source, target }: SourceAndTarget,
  { work, ...options }: TakingOptions = {},
): Taking {
  const message = keepingHandler(work);
  const captured = capture(source, {
    target,
    messages: true,
    ...options,
    sink: { ...options.sink, message },
  });
  return { source, target, ...captured, message };
}
