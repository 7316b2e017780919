import type { Change } from '../../../lib/engine/model/change.js';
import type { Message } from '../../../lib/engine/model/message.js';
import type { Transaction } from '../../../lib/engine/model/transaction.js';
import { joined, type Run } from './expected.js';

/** A transaction that was read to its end, as plain objects that can be compared. */
export interface Content extends Pick<
  Transaction,
  'xid' | 'commitLsn' | 'commitEndLsn' | 'commitTimeMicros' | 'messages'
> {
  readonly changes: readonly Change[];
}

/** @param reading - called before each change, and once behind the last */
export async function readContent(
  transaction: Transaction,
  reading: (changes: number) => void,
): Promise<Content> {
  const changes: Change[] = [];
  for await (const change of transaction.changes) {
    reading(changes.length);
    changes.push({ ...change });
  }
  reading(Infinity);
  const { xid, commitLsn, commitEndLsn, commitTimeMicros, messages } =
    transaction;
  return {
    xid,
    commitLsn,
    commitEndLsn,
    commitTimeMicros,
    changes,
    messages: messages.map((message) => ({ ...message })),
  };
}

/** What was done, in order, as {@link Expected} has it. */
export function runsOf({ changes, messages }: Content): readonly Run[] {
  const all = [
    ...changes.map((change) => ({ of: traceOf(change), at: change.ordinal })),
    ...messages.map((message) => ({
      of: traceOfMessage(message),
      at: message.ordinal ?? -1,
    })),
  ];
  return joined(
    all
      .toSorted((one, other) => one.at - other.at)
      .map(({ of }) => ({ of, count: 1 })),
  );
}

function traceOf(change: Change): string {
  switch (change.op) {
    case 'insert':
    case 'update':
      return `${change.relation} written by ${String(change.record['mark'])}`;
    case 'delete':
      return `${change.relation} removed`;
    case 'truncate':
      return `${change.relation} truncated`;
  }
}

/** Some are padded. */
function traceOfMessage({ content }: Message): string {
  return content.toString('utf8').replace(/\.+$/, '');
}
