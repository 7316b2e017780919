import type { MessageHandler } from '../engine/deliver/sink.js';
import { promiseOf } from '../engine/model/answer.js';
import type { Message, MessageContext } from '../engine/model/message.js';
import type { Pipeline } from '../engine/pipeline.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import { messageHandlers, type SinkMember } from './sink.metadata.js';

/**
 * What the methods with `@OnMessage()` are to the engine: one handler, that calls each on the instance; `undefined` when there is
 * none.
 *
 * @throws {SinkDefinitionError} when there are methods and the pipeline does not ask for messages, or the other way round
 */
export function createMessageHandler(
  sinkClass: { readonly name: string },
  instance: object,
  pipeline: Pipeline,
): MessageHandler | undefined {
  const members = messageHandlers(sinkClass);
  requireAgreement(sinkClass.name, members, pipeline);
  if (members.length === 0) return undefined;
  const methods = members.map((member) =>
    methodOf(sinkClass.name, instance, member),
  );
  const taking = (prefix: string): MessageMethod[] =>
    methods.filter((method) => (method.prefix ?? prefix) === prefix);
  return {
    takes: (prefix) => taking(prefix).length > 0,
    async handle(message, context) {
      for (const { call } of taking(message.prefix))
        await promiseOf(call(message, context));
    },
  };
}

interface MessageMethod {
  readonly prefix: string | undefined;
  call(message: Message, context: MessageContext): unknown;
}

function methodOf(
  name: string,
  instance: object,
  { property, prefix }: SinkMember,
): MessageMethod {
  const method: unknown = Reflect.get(instance, property);
  if (typeof method !== 'function') {
    throw new SinkDefinitionError(
      `${name}.${String(property)} has @OnMessage() but is not a method.`,
    );
  }
  return {
    prefix,
    call(message, context): unknown {
      return Reflect.apply(method, instance, [message, context]);
    },
  };
}

function requireAgreement(
  name: string,
  [first]: readonly SinkMember[],
  pipeline: Pipeline,
): void {
  const { messages } = pipeline.options;
  if (messages && first === undefined) {
    throw new SinkDefinitionError(
      `${name} has no @OnMessage(), but pipeline "${pipeline.name}" has the option messages; put it on a method (message, context) => Promise<void>, or remove the option.`,
    );
  }
  if (!messages && first !== undefined) {
    throw new SinkDefinitionError(
      `${name}.${String(first.property)} has @OnMessage(), but pipeline "${pipeline.name}" does not ask for messages; set its option messages to true, or remove the decorator.`,
    );
  }
}
