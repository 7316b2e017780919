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

interface ChangeHandler extends ChangeSettings {
  /** How messages name it. */
  readonly place: string;
  readonly method: SinkMethod;
}

/**
 * Handles a transaction by giving each change to the methods that take it, in the order of the class, one after the other. It is done
 * when the last one is.
 *
 * @throws {SinkDefinitionError} when the decorator of one was given what cannot work
 */
export function createChangeHandler(
  subject: SinkSubject,
  members: readonly SinkMember[],
): (transaction: Transaction) => Promise<void> {
  const handlers = new Map<string, ChangeHandler[]>();
  for (const member of members) {
    const handler = handlerOf(subject, member);
    const others = handlers.get(handler.relation) ?? [];
    refuseTwice(handler, others);
    handlers.set(handler.relation, [...others, handler]);
  }
  return async (transaction) => {
    const context: ChangeContext = { transaction };
    for await (const change of transaction.changes) {
      const taking = handlers.get(change.relation);
      if (taking === undefined) continue;
      for (const { ops, place, method } of taking) {
        if (ops.has(change.op)) await promiseOf(place, method(change, context));
      }
    }
  };
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
