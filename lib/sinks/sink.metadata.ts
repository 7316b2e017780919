import 'reflect-metadata';
import type { SinkKind } from '../engine/model/sink-kind.js';
import { SinkDefinitionError } from './sink-definition.error.js';

// Symbol.for: a sink decorated by one copy of this package is found by another.
const SINK = Symbol.for('nestjs-replicant:sink');
const KIND = Symbol.for('nestjs-replicant:sink-kind');
const MEMBERS = {
  checkpoint: {
    key: Symbol.for('nestjs-replicant:checkpoint'),
    decorator: '@Checkpoint()',
  },
  transaction: {
    key: Symbol.for('nestjs-replicant:on-transaction'),
    decorator: '@OnTransaction()',
  },
  batch: {
    key: Symbol.for('nestjs-replicant:on-batch'),
    decorator: '@OnBatch()',
  },
  change: {
    key: Symbol.for('nestjs-replicant:on-change'),
    decorator: '@OnChange()',
  },
  message: {
    key: Symbol.for('nestjs-replicant:on-message'),
    decorator: '@OnMessage()',
  },
  snapshot: {
    key: Symbol.for('nestjs-replicant:on-snapshot'),
    decorator: '@OnSnapshot()',
  },
  snapshotComplete: {
    key: Symbol.for('nestjs-replicant:on-snapshot-complete'),
    decorator: '@OnSnapshotComplete()',
  },
  snapshotProgress: {
    key: Symbol.for('nestjs-replicant:snapshot-progress'),
    decorator: '@SnapshotProgress()',
  },
  sessionIdentity: {
    key: Symbol.for('nestjs-replicant:on-session-identity'),
    decorator: '@OnSessionIdentity()',
  },
  slotOrigin: {
    key: Symbol.for('nestjs-replicant:on-slot-origin'),
    decorator: '@OnSlotOrigin()',
  },
  schemaChange: {
    key: Symbol.for('nestjs-replicant:on-schema-change'),
    decorator: '@OnSchemaChange()',
  },
} as const;

/** What a decorated member of a sink is for. */
export type MemberRole = keyof typeof MEMBERS;

/** A decorated member of a sink class. */
export interface SinkMember {
  readonly property: string | symbol;
  /** Name of the pipeline whose types the decorator was given. */
  readonly pipeline?: string;
  /** What else the decorator was given, unchecked. */
  readonly settings?: unknown;
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

/** The decorator of a role, as messages name it. */
export function decoratorOf(role: MemberRole): string {
  return MEMBERS[role].decorator;
}

// The member's name is kept on its class, not on the function: a method that overrides the decorated one stays the handler.
export function markMember(
  role: MemberRole,
  prototype: object,
  member: SinkMember,
): void {
  const { key, decorator } = MEMBERS[role];
  if (typeof prototype === 'function') {
    throw new SinkDefinitionError(
      `${prototype.name}.${String(member.property)} is static; ${decorator} belongs on an instance member.`,
    );
  }
  Reflect.defineMetadata(
    key,
    [...ownMembers(key, prototype.constructor), member],
    prototype.constructor,
  );
}

/**
 * What the decorator of a role says of a class: its members in the order in which they are written, those of base classes first. Where
 * a subclass decorates an inherited member anew, only that counts.
 */
export function membersOf(
  role: MemberRole,
  sinkClass: object,
): readonly SinkMember[] {
  const { key } = MEMBERS[role];
  const found = new Map<string | symbol, readonly SinkMember[]>();
  for (const link of hierarchy(sinkClass)) {
    const own = ownMembers(key, link);
    for (const { property } of own)
      found.set(
        property,
        own.filter((member) => member.property === property),
      );
  }
  return [...found.values()].flat();
}

/** A class and its base classes, the outermost base first. */
function hierarchy(sinkClass: object): readonly object[] {
  const base = Reflect.getPrototypeOf(sinkClass);
  return base === null ? [sinkClass] : [...hierarchy(base), sinkClass];
}

function ownMembers(key: symbol, sinkClass: object): readonly SinkMember[] {
  const own: unknown = Reflect.getOwnMetadata(key, sinkClass);
  return Array.isArray(own) ? own.filter(isMember) : [];
}

function isMember(value: unknown): value is SinkMember {
  return typeof value === 'object' && value !== null && 'property' in value;
}
