import type {
  CheckpointKeeper,
  CheckpointReader,
  SinkCheckpoint,
} from '../engine/model/checkpoint.js';
import type { Pipeline } from '../engine/pipeline.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import { onlyMember, placeOf, type SinkSubject } from './sink.members.js';
import { membersOf } from './sink.metadata.js';

/** A keeper that wants to know whose positions it keeps, as `CheckpointTable` does. */
interface BindableKeeper extends CheckpointKeeper {
  bindTo(owner: { readonly pipeline: string; readonly slotName: string }): void;
}

/**
 * Where a sink keeps its position; `undefined` when the library keeps it.
 *
 * @throws {SinkDefinitionError} when the member is missing, doubled, of the wrong kind, or not needed
 */
export function createCheckpoint(
  subject: SinkSubject,
  pipeline: Pipeline,
): SinkCheckpoint | undefined {
  const { name } = subject.sinkClass;
  if (pipeline.options.checkpointStore !== null) {
    const [unneeded] = membersOf('checkpoint', subject.sinkClass);
    if (unneeded === undefined) return undefined;
    throw new SinkDefinitionError(
      `${placeOf(subject, unneeded)} has @Checkpoint(), but the library keeps the checkpoint of pipeline "${pipeline.name}"; remove the member, or the option checkpointStore.`,
    );
  }
  const member = onlyMember('checkpoint', subject);
  if (member === null) {
    throw new SinkDefinitionError(
      `${name} has no @Checkpoint(); put it on a property that holds a CheckpointTable, or on a method that reads the position applied last. A sink that cannot keep a position leaves it to the option checkpointStore.`,
    );
  }
  const place = placeOf(subject, member);
  const value: unknown = Reflect.get(subject.instance, member.property);
  if (isReader(value)) {
    return {
      kind: 'reader',
      read: async (context) => value.call(subject.instance, context),
    };
  }
  if (!isKeeper(value)) {
    throw new SinkDefinitionError(
      `${place} has @Checkpoint() but holds neither a CheckpointTable nor a method (context) => Promise<Lsn | null>.`,
    );
  }
  if (isBindable(value)) bind(place, value, pipeline);
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
