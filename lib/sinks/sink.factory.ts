import type { Sink } from '../engine/deliver/sink.js';
import type { SinkCheckpoint } from '../engine/model/checkpoint.js';
import type {
  CheckpointKeeper,
  CheckpointReader,
} from '../engine/model/checkpoint.js';
import type { Transaction } from '../engine/model/transaction.js';
import type { Pipeline } from '../engine/pipeline.js';
import { createMessageHandler } from './message-handlers.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import {
  checkpointMembers,
  hookDecorator,
  hookMembers,
  sinkKind,
  transactionHandlers,
  type Hook,
  type SinkMember,
} from './sink.metadata.js';

/** A keeper that wants to know whose positions it keeps, as `CheckpointTable` does. */
interface BindableKeeper extends CheckpointKeeper {
  bindTo(owner: { readonly pipeline: string; readonly slotName: string }): void;
}

/**
 * Turns an instance of a decorated class into what the engine delivers to. Methods are called on the instance itself,
 * past every exception filter, guard and interceptor.
 *
 * @throws {SinkDefinitionError} when decorated members are missing, doubled, or of the wrong kind
 */
export function createSink(
  sinkClass: { readonly name: string },
  instance: object,
  pipeline: Pipeline,
): Sink {
  const { name } = sinkClass;
  const handler = only(
    name,
    '@OnTransaction()',
    transactionHandlers(sinkClass),
    'the method that applies a transaction',
  );
  if (handler.pipeline !== undefined && handler.pipeline !== pipeline.name) {
    throw new SinkDefinitionError(
      `${name}.${String(handler.property)} has @OnTransaction("${handler.pipeline}"), but ${name} is the sink of pipeline "${pipeline.name}"; name the same pipeline in both.`,
    );
  }
  const apply = read(instance, handler.property);
  if (!isHandler(apply)) {
    throw new SinkDefinitionError(
      `${name}.${String(handler.property)} has @OnTransaction() but is not a method.`,
    );
  }
  const checkpoint = only(
    name,
    '@Checkpoint()',
    checkpointMembers(sinkClass),
    'a property that holds a CheckpointTable, or on a method that reads the position applied last',
  );
  const message = createMessageHandler(sinkClass, instance, pipeline);
  const kind = sinkKind(sinkClass);
  const sessionIdentity = hook('sessionIdentity', sinkClass, instance);
  const slotOrigin = hook('slotOrigin', sinkClass, instance);
  const schemaChange = hook('schemaChange', sinkClass, instance);
  if (kind === 'appendLog' && slotOrigin === null) {
    throw new SinkDefinitionError(
      `${name} is of kind 'appendLog' and has no ${hookDecorator('slotOrigin')}; put it on a method that rejects when the slot begins after the end of the log.`,
    );
  }
  return {
    name,
    kind,
    checkpoint: createCheckpoint(name, instance, checkpoint.property, pipeline),
    transaction: (transaction) => apply.call(instance, transaction),
    ...(message && { message }),
    ...(sessionIdentity && { sessionIdentity }),
    ...(slotOrigin && { slotOrigin }),
    ...(schemaChange && { schemaChange }),
  };
}

/** The method that a hook's decorator stands on, called on the instance; `null` when there is none. */
function hook(
  which: Hook,
  sinkClass: { readonly name: string },
  instance: object,
): ((...given: readonly unknown[]) => unknown) | null {
  const found = hookMembers(which, sinkClass);
  if (found.length === 0) return null;
  const decorator = hookDecorator(which);
  const { property } = only(sinkClass.name, decorator, found, 'one method');
  const method = read(instance, property);
  if (typeof method !== 'function') {
    throw new SinkDefinitionError(
      `${sinkClass.name}.${String(property)} has ${decorator} but is not a method.`,
    );
  }
  return (...given) => {
    const answer: unknown = Reflect.apply(method, instance, given);
    return answer;
  };
}

function only(
  name: string,
  decorator: string,
  members: readonly SinkMember[],
  place: string,
): SinkMember {
  const [member, ...others] = members;
  if (member === undefined)
    throw new SinkDefinitionError(
      `${name} has no ${decorator}; put it on ${place}.`,
    );
  if (others.length > 0) {
    const names = members.map(({ property }) => String(property)).join(', ');
    throw new SinkDefinitionError(
      `${name} has ${decorator} on more than one member (${names}); keep one.`,
    );
  }
  return member;
}

function createCheckpoint(
  name: string,
  instance: object,
  property: string | symbol,
  pipeline: Pipeline,
): SinkCheckpoint {
  const value = read(instance, property);
  if (isReader(value))
    return {
      kind: 'reader',
      read: async (context) => value.call(instance, context),
    };
  if (!isKeeper(value)) {
    throw new SinkDefinitionError(
      `${name}.${String(property)} has @Checkpoint() but holds neither a CheckpointTable nor a method (context) => Promise<Lsn | null>.`,
    );
  }
  if (isBindable(value)) bind(`${name}.${String(property)}`, value, pipeline);
  return { kind: 'keeper', keeper: value };
}

function bind(
  place: string,
  keeper: BindableKeeper,
  { name, options }: Pipeline,
): void {
  try {
    keeper.bindTo({ pipeline: name, slotName: options.slotName });
  } catch (error) {
    throw new SinkDefinitionError(
      `${place}: ${error instanceof Error ? error.message : 'cannot be bound.'}`,
    );
  }
}

function read(instance: object, property: string | symbol): unknown {
  return Reflect.get(instance, property);
}

function isHandler(
  value: unknown,
): value is (transaction: Transaction) => unknown {
  return typeof value === 'function';
}

function isReader(value: unknown): value is CheckpointReader {
  return typeof value === 'function';
}

// By structure and not by class: a table made by another copy of this package is one too.
function isKeeper(value: unknown): value is CheckpointKeeper {
  if (typeof value !== 'object' || value === null || !('advancedTo' in value))
    return false;
  return ['identify', 'load', 'confirm', 'home'].every(
    (method) => typeof Reflect.get(value, method) === 'function',
  );
}

function isBindable(keeper: CheckpointKeeper): keeper is BindableKeeper {
  return 'bindTo' in keeper && typeof keeper.bindTo === 'function';
}
