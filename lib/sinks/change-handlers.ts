import type { MessageHandler, SinkMethods } from '../engine/deliver/sink.js';
import { promiseOf } from '../engine/model/answer.js';
import type { Transaction } from '../engine/model/transaction.js';
import {
  changeSettings,
  takenTwice,
  type ChangeSettings,
} from './change-settings.js';
import {
  methodOf,
  placeOf,
  type SinkMethod,
  type SinkSubject,
} from './sink.members.js';
import type { SinkMember } from './sink.metadata.js';

/** What a method with `@OnChange()` is told beside the change. */
export interface ChangeContext {
  /** The transaction of the change; its changes come one by one, to the methods that take them. */
  readonly transaction: Omit<Transaction, 'changes'>;
}

/** What methods with `@OnChange()` are to the engine. */
type ChangeHandling = Required<Pick<SinkMethods, 'tables'>> & {
  transaction(transaction: Transaction): Promise<void>;
};

interface ChangeHandler extends ChangeSettings {
  /** How messages name it. */
  readonly place: string;
  readonly method: SinkMethod;
}

/**
 * Handles a transaction by giving each change to the methods that take it, in the order of the class, one after the other; and its messages,
 * between the changes where they stand, to the methods that take those. It is done when the last one is.
 *
 * @throws {SinkDefinitionError} when the decorator of one was given what cannot work
 */
export function createChangeHandler(
  subject: SinkSubject,
  members: readonly SinkMember[],
  messages: MessageHandler | null,
): ChangeHandling {
  const handlers = new Map<string, ChangeHandler[]>();
  for (const member of members) {
    const handler = handlerOf(subject, member);
    const others = handlers.get(handler.relation) ?? [];
    refuseTwice(handler, others);
    handlers.set(handler.relation, [...others, handler]);
  }
  const handle = async (transaction: Transaction): Promise<void> => {
    const context: ChangeContext = { transaction };
    const progress = { told: 0 };
    for await (const change of transaction.changes) {
      await tellMessages(messages, transaction, progress, change.ordinal);
      const taking = handlers.get(change.relation);
      if (taking === undefined) continue;
      for (const { ops, place, method } of taking) {
        if (ops.has(change.op)) await promiseOf(place, method(change, context));
      }
    }
    await tellMessages(messages, transaction, progress, Infinity);
  };
  return { transaction: handle, tables: [...handlers.keys()] };
}

/** Tells the messages before an ordinal that were not told yet: they have arrived when what stands behind them has. */
async function tellMessages(
  handler: MessageHandler | null,
  { messages }: Transaction,
  progress: { told: number },
  before: number,
): Promise<void> {
  if (handler === null) return;
  for (const message of messages.slice(progress.told)) {
    if ((message.ordinal ?? 0) >= before) return;
    progress.told += 1;
    await handler.handle(message, { lsn: message.lsn });
  }
}

function handlerOf(subject: SinkSubject, member: SinkMember): ChangeHandler {
  const place = placeOf(subject, member);
  return {
    place,
    method: methodOf('change', subject, member),
    ...changeSettings(place, member.settings),
  };
}

/** @throws {SinkDefinitionError} when a method would take a change twice */
function refuseTwice(
  { place, relation, ops }: ChangeHandler,
  others: readonly ChangeHandler[],
): void {
  const same = others.filter((other) => other.place === place);
  const [twice] = [...ops].filter((op) =>
    same.some((other) => other.ops.has(op)),
  );
  if (twice !== undefined) throw takenTwice(place, relation, twice);
}
