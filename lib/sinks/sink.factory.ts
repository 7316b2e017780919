import type { Sink } from '../engine/deliver/sink.js';
import type { SinkCheckpoint } from '../engine/model/checkpoint.js';
import type {
  CheckpointKeeper,
  CheckpointReader,
} from '../engine/model/checkpoint.js';
import type { Transaction } from '../engine/model/transaction.js';
import type { Pipeline } from '../engine/pipeline.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import {
  checkpointMembers,
  transactionHandlers,
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
  return {
    name,
    checkpoint: createCheckpoint(name, instance, checkpoint.property, pipeline),
    transaction: (transaction) => apply.call(instance, transaction),
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
