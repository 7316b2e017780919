import 'reflect-metadata';
import type { SinkKind } from '../engine/model/sink-kind.js';
import { SinkDefinitionError } from './sink-definition.error.js';

// Symbol.for: a sink decorated by one copy of this package is found by another.
const SINK = Symbol.for('nestjs-replicant:sink');
const CHECKPOINT = Symbol.for('nestjs-replicant:checkpoint');
const TRANSACTION = Symbol.for('nestjs-replicant:on-transaction');
const MESSAGE = Symbol.for('nestjs-replicant:on-message');
const KIND = Symbol.for('nestjs-replicant:sink-kind');
const HOOKS = {
  sessionIdentity: {
    key: Symbol.for('nestjs-replicant:on-session-identity'),
    decorator: '@OnSessionIdentity',
  },
  slotOrigin: {
    key: Symbol.for('nestjs-replicant:on-slot-origin'),
    decorator: '@OnSlotOrigin',
  },
  schemaChange: {
    key: Symbol.for('nestjs-replicant:on-schema-change'),
    decorator: '@OnSchemaChange',
  },
} as const;

/** A method of a sink that is asked, and need not be there. */
export type Hook = keyof typeof HOOKS;

/** A decorated member of a sink class. */
export interface SinkMember {
  readonly property: string | symbol;
  /** Name of the pipeline whose types the decorator was given. */
  readonly pipeline?: string;
  /** Prefix of the messages that it takes; all without one. */
  readonly prefix?: string;
}

/** Marks a class as the sink of a pipeline; subclasses inherit it. */
export function markSink(
  sinkClass: object,
  pipeline: string,
  kind: SinkKind,
): void {
  Reflect.defineMetadata(SINK, pipeline, sinkClass);
  Reflect.defineMetadata(KIND, kind, sinkClass);
}

export function sinkKind(sinkClass: object): SinkKind {
  // Whatever else it says is taken for the kind that is refused without consent to start.
  const kind: unknown = Reflect.getMetadata(KIND, sinkClass);
  return kind === 'appendLog' ? kind : 'mirror';
}

/** Name of the pipeline whose sink this class is, or `undefined` when it is none. */
export function sinkPipeline(sinkClass: object): string | undefined {
  const pipeline: unknown = Reflect.getMetadata(SINK, sinkClass);
  return typeof pipeline === 'string' ? pipeline : undefined;
}

export function markCheckpoint(prototype: object, member: SinkMember): void {
  mark(CHECKPOINT, '@Checkpoint', prototype, member);
}

export function markTransactionHandler(
  prototype: object,
  member: SinkMember,
): void {
  mark(TRANSACTION, '@OnTransaction', prototype, member);
}

export function markMessageHandler(
  prototype: object,
  member: SinkMember,
): void {
  const { property } = member;
  // Of two on the same method one would be forgotten, and its messages with it.
  if (
    ownMembers(MESSAGE, prototype.constructor).some(
      (other) => other.property === property,
    )
  ) {
    throw new SinkDefinitionError(
      `${prototype.constructor.name}.${String(property)} has @OnMessage() twice; write a method for each prefix.`,
    );
  }
  mark(MESSAGE, '@OnMessage', prototype, member);
}

export function markHook(
  hook: Hook,
  prototype: object,
  member: SinkMember,
): void {
  const { key, decorator } = HOOKS[hook];
  mark(key, decorator, prototype, member);
}

/** The decorator of a hook, as messages name it. */
export function hookDecorator(hook: Hook): string {
  return `${HOOKS[hook].decorator}()`;
}

/** Methods that the decorator of a hook stands on, in the class and its base classes. */
export function hookMembers(
  hook: Hook,
  sinkClass: object,
): readonly SinkMember[] {
  return members(HOOKS[hook].key, sinkClass);
}

/** Members that `@Checkpoint` stands on, in the class and its base classes. */
export function checkpointMembers(sinkClass: object): readonly SinkMember[] {
  return members(CHECKPOINT, sinkClass);
}

/** Methods that `@OnTransaction` stands on, in the class and its base classes. */
export function transactionHandlers(sinkClass: object): readonly SinkMember[] {
  return members(TRANSACTION, sinkClass);
}

/** Methods that `@OnMessage` stands on, in the class and its base classes. */
export function messageHandlers(sinkClass: object): readonly SinkMember[] {
  return members(MESSAGE, sinkClass);
}

// The member's name is kept on its class, not on the function: a method that overrides the decorated one stays the handler.
function mark(
  key: symbol,
  decorator: string,
  prototype: object,
  member: SinkMember,
): void {
  if (typeof prototype === 'function') {
    throw new SinkDefinitionError(
      `${prototype.name}.${String(member.property)} is static; ${decorator}() belongs on an instance member.`,
    );
  }
  Reflect.defineMetadata(
    key,
    [...ownMembers(key, prototype.constructor), member],
    prototype.constructor,
  );
}

function members(key: symbol, sinkClass: object): readonly SinkMember[] {
  const found = new Map<string | symbol, SinkMember>();
  for (
    let link: object | null = sinkClass;
    link !== null;
    link = Reflect.getPrototypeOf(link)
  ) {
    for (const member of ownMembers(key, link)) {
      if (!found.has(member.property)) found.set(member.property, member);
    }
  }
  return [...found.values()];
}

function ownMembers(key: symbol, sinkClass: object): readonly SinkMember[] {
  const own: unknown = Reflect.getOwnMetadata(key, sinkClass);
  return Array.isArray(own) ? own.filter(isMember) : [];
}

function isMember(value: unknown): value is SinkMember {
  return typeof value === 'object' && value !== null && 'property' in value;
}
