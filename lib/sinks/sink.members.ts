import { SinkDefinitionError } from './sink-definition.error.js';
import {
  decoratorOf,
  membersOf,
  type MemberRole,
  type SinkMember,
} from './sink.metadata.js';

/** An instance of a decorated class, and the pipeline that it is the sink of. */
export interface SinkSubject {
  readonly sinkClass: { readonly name: string };
  readonly instance: object;
  /** Name of the pipeline. */
  readonly pipeline: string;
}

/** A decorated method, bound to its instance. */
export type SinkMethod = (...given: readonly unknown[]) => unknown;

/** A member as messages name it. */
export function placeOf(
  { sinkClass }: SinkSubject,
  { property }: SinkMember,
): string {
  return `${sinkClass.name}.${String(property)}`;
}

/**
 * The one member with the decorator of a role, `null` when there is none.
 *
 * @throws {SinkDefinitionError} when there are several
 */
export function onlyMember(
  role: MemberRole,
  { sinkClass }: SinkSubject,
): SinkMember | null {
  const members = membersOf(role, sinkClass);
  if (new Set(members.map(({ property }) => property)).size > 1) {
    throw new SinkDefinitionError(
      `${sinkClass.name} has ${decoratorOf(role)} on more than one member (${namesOf(members)}); keep one.`,
    );
  }
  return members[0] ?? null;
}

/** The names of members, each once, for a message. */
export function namesOf(members: readonly SinkMember[]): string {
  const properties = new Set(members.map(({ property }) => property));
  return [...properties].map(String).join(', ');
}

/** The one method with the decorator of a role, `null` when there is none. */
export function onlyMethod(
  role: MemberRole,
  subject: SinkSubject,
): SinkMethod | null {
  const member = onlyMember(role, subject);
  return member === null ? null : methodOf(role, subject, member);
}

/**
 * A decorated method, as the instance has it.
 *
 * @throws {SinkDefinitionError} when it is none, or its decorator names another pipeline
 */
export function methodOf(
  role: MemberRole,
  subject: SinkSubject,
  member: SinkMember,
): SinkMethod {
  const { sinkClass, instance, pipeline } = subject;
  if (member.pipeline !== undefined && member.pipeline !== pipeline) {
    const decorator = decoratorOf(role).replace('()', `("${member.pipeline}")`);
    throw new SinkDefinitionError(
      `${placeOf(subject, member)} has ${decorator}, but ${sinkClass.name} is the sink of pipeline "${pipeline}"; name the same pipeline in both.`,
    );
  }
  const method: unknown = Reflect.get(instance, member.property);
  if (typeof method !== 'function') {
    throw new SinkDefinitionError(
      `${placeOf(subject, member)} has ${decoratorOf(role)} but is not a method.`,
    );
  }
  return (...given) => {
    const answer: unknown = Reflect.apply(method, instance, given);
    return answer;
  };
}
