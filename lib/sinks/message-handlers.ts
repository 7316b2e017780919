import type { MessageHandler } from '../engine/deliver/sink.js';
import { promiseOf } from '../engine/model/answer.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import {
  methodOf,
  placeOf,
  type SinkMethod,
  type SinkSubject,
} from './sink.members.js';
import { membersOf, type SinkMember } from './sink.metadata.js';

/** A method with `@OnMessage()`. */
interface MessageMethod {
  /** How messages name it. */
  readonly place: string;
  readonly method: SinkMethod;
  /** Of the messages that it takes; all without one. */
  readonly prefix: string | undefined;
}

/**
 * What the methods with `@OnMessage()` are to the engine: one handler, that calls each on the instance; `null` when there is
 * none.
 *
 * @throws {SinkDefinitionError} when there are methods and the pipeline does not ask for messages, or the other way round
 */
export function createMessageHandler(
  subject: SinkSubject,
  options: { readonly messages: boolean },
): MessageHandler | null {
  const members = membersOf('message', subject.sinkClass);
  requireAgreement(subject, members, options.messages);
  if (members.length === 0) return null;
  const methods = members.map((member) => messageMethod(subject, member));
  refuseTwice(methods);
  const taking = (prefix: string): MessageMethod[] =>
    methods.filter((method) => (method.prefix ?? prefix) === prefix);
  return {
    takes: (prefix) => taking(prefix).length > 0,
    async handle(message, context) {
      for (const { place, method } of taking(message.prefix))
        await promiseOf(place, method(message, context));
    },
  };
}

function messageMethod(
  subject: SinkSubject,
  member: SinkMember,
): MessageMethod {
  const place = placeOf(subject, member);
  return {
    place,
    method: methodOf('message', subject, member),
    prefix: prefixIn(place, member.settings),
  };
}

/** A misspelt setting would take the messages of every prefix. */
function prefixIn(place: string, settings: unknown): string | undefined {
  if (isGiven(settings)) {
    const { prefix, ...others } = settings;
    const known = Object.keys(others).length === 0;
    if (known && (prefix === undefined || typeof prefix === 'string'))
      return prefix;
  }
  throw new SinkDefinitionError(
    `${place} has @OnMessage() with something else than { prefix: text }; give the prefix of the messages so, or nothing to take all.`,
  );
}

function isGiven(settings: unknown): settings is { readonly prefix?: unknown } {
  return typeof settings === 'object' && settings !== null;
}

/** @throws {SinkDefinitionError} when a method would be handed a message twice */
function refuseTwice(methods: readonly MessageMethod[]): void {
  methods.forEach(({ place, prefix }, index) => {
    const twice = methods
      .slice(0, index)
      .some(
        (other) =>
          other.place === place &&
          (prefix ?? other.prefix) === (other.prefix ?? prefix),
      );
    if (!twice) return;
    throw new SinkDefinitionError(
      `${place} has @OnMessage() more than once for the same messages, and would be called twice; give it each prefix once, or none to take all.`,
    );
  });
}

function requireAgreement(
  { sinkClass, pipeline }: SinkSubject,
  [first]: readonly SinkMember[],
  messages: boolean,
): void {
  if (messages && first === undefined) {
    throw new SinkDefinitionError(
      `${sinkClass.name} has no @OnMessage(), but pipeline "${pipeline}" has the option messages; put it on a method (message, context) => Promise<void>, or remove the option.`,
    );
  }
  if (!messages && first !== undefined) {
    throw new SinkDefinitionError(
      `${sinkClass.name}.${String(first.property)} has @OnMessage(), but pipeline "${pipeline}" does not ask for messages; set its option messages to true, or remove the decorator.`,
    );
  }
}
