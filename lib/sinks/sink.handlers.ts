import type { MessageHandler, SinkMethods } from '../engine/deliver/sink.js';
import type { ResolvedOptions } from '../engine/options/resolve-options.js';
import { createChangeHandler } from './change-handlers.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import {
  namesOf,
  onlyMethod,
  type SinkMethod,
  type SinkSubject,
} from './sink.members.js';
import { decoratorOf, membersOf, type MemberRole } from './sink.metadata.js';

type Handlers = Pick<SinkMethods, 'transaction' | 'batch' | 'tables'>;
type TransactionHandler = NonNullable<SinkMethods['transaction']>;

/**
 * The methods that take transactions, as the mode of delivery has them.
 *
 * @param messages - those that take messages; of a sink that takes changes by table they take transactional ones too
 * @throws {SinkDefinitionError} when one is missing, doubled, or belongs to another mode
 */
export function createHandlers(
  subject: SinkSubject,
  options: ResolvedOptions,
  messages: MessageHandler | null,
): Handlers {
  if (options.batchDelivery !== null) return batchHandlers(subject);
  return options.checkpointStore === null
    ? { transaction: ofSinkWithCheckpoint(subject) }
    : ofSinkWithout(subject, messages);
}

function batchHandlers(subject: SinkSubject): Handlers {
  const instead = 'use @OnBatch(), or remove the option batchDelivery';
  refuse('transaction', subject, 'takes one transaction at a time', instead);
  refuse('change', subject, 'takes one change at a time', instead);
  return {
    batch: needed(
      'batch',
      subject,
      'the option batchDelivery needs it on the method that applies several transactions',
    ),
  };
}

function ofSinkWithCheckpoint(subject: SinkSubject): TransactionHandler {
  refuse(
    'batch',
    subject,
    'takes several transactions at a time',
    'set the option batchDelivery, or use @OnTransaction()',
  );
  refuse(
    'change',
    subject,
    'needs a checkpoint that the library keeps',
    'set the option checkpointStore, or read the changes in a method with @OnTransaction()',
  );
  return needed(
    'transaction',
    subject,
    'put it on the method that applies a transaction',
  );
}

function ofSinkWithout(
  subject: SinkSubject,
  messages: MessageHandler | null,
): Handlers {
  refuse(
    'batch',
    subject,
    'needs a sink that keeps its checkpoint',
    'use @OnTransaction(); checkpointStore.batch stores the checkpoint once for several transactions',
  );
  const { name } = subject.sinkClass;
  const transactions = membersOf('transaction', subject.sinkClass);
  const changes = membersOf('change', subject.sinkClass);
  if (transactions.length > 0 && changes.length > 0) {
    throw new SinkDefinitionError(
      `${name} has @OnTransaction() (${namesOf(transactions)}) and @OnChange() (${namesOf(changes)}), so each change would be handled twice; keep one of the two.`,
    );
  }
  if (changes.length > 0)
    return createChangeHandler(subject, changes, messages);
  return {
    transaction: needed(
      'transaction',
      subject,
      'put it on the method that takes a transaction, or @OnChange() on those that take the changes of a table',
    ),
  };
}

function needed(
  role: MemberRole,
  subject: SinkSubject,
  place: string,
): SinkMethod {
  const method = onlyMethod(role, subject);
  if (method !== null) return method;
  throw new SinkDefinitionError(
    `${subject.sinkClass.name} has no ${decoratorOf(role)}; ${place}.`,
  );
}

function refuse(
  role: MemberRole,
  { sinkClass, pipeline }: SinkSubject,
  why: string,
  instead: string,
): void {
  const members = membersOf(role, sinkClass);
  if (members.length === 0) return;
  throw new SinkDefinitionError(
    `${sinkClass.name} has ${decoratorOf(role)} (${namesOf(members)}), which ${why} and does not fit the options of pipeline "${pipeline}"; ${instead}.`,
  );
}
