import type { SinkMethods } from '../engine/deliver/sink.js';
import type { SinkCheckpoint } from '../engine/model/checkpoint.js';
import type { ResolvedOptions } from '../engine/options/resolve-options.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import {
  onlyMember,
  onlyMethod,
  placeOf,
  type SinkSubject,
} from './sink.members.js';
import { decoratorOf, type MemberRole } from './sink.metadata.js';

type SnapshotMethods = Pick<
  SinkMethods,
  'snapshot' | 'snapshotComplete' | 'snapshotProgress'
>;

const ROLES = ['snapshot', 'snapshotComplete', 'snapshotProgress'] as const;

/**
 * The methods that take part in a snapshot, as its mode and the checkpoint of the sink need them.
 *
 * @param checkpoint - of the sink; `undefined` when the library keeps it
 * @throws {SinkDefinitionError} when one is missing, doubled, no method, or not for this mode
 */
export function createSnapshotHandlers(
  subject: SinkSubject,
  { snapshot: wanted }: Pick<ResolvedOptions, 'snapshot'>,
  checkpoint: SinkCheckpoint | undefined,
): SnapshotMethods {
  const { pipeline } = subject;
  if (wanted === null) {
    for (const role of ROLES) {
      refuse(
        role,
        subject,
        `pipeline "${pipeline}" copies no rows that exist already`,
        'set its option snapshot, or remove the decorator',
      );
    }
    return {};
  }
  const snapshot = onlyMethod('snapshot', subject);
  if (snapshot === null) {
    throw missing(
      'snapshot',
      subject,
      `pipeline "${pipeline}" has the option snapshot`,
      'put it on the method (rows, context) => Promise<void> that takes the rows that exist already, or remove the option',
    );
  }
  const further =
    wanted.mode === 'initial'
      ? ofInitial(subject, checkpoint)
      : ofIncremental(subject, checkpoint);
  return { snapshot, ...further };
}

function ofInitial(
  subject: SinkSubject,
  checkpoint: SinkCheckpoint | undefined,
): SnapshotMethods {
  refuse(
    'snapshotProgress',
    subject,
    `the snapshot of pipeline "${subject.pipeline}" is initial, and begins anew when it is interrupted`,
    "remove the decorator, or set snapshot: { mode: 'incremental' }",
  );
  if (checkpoint === undefined) {
    refuse(
      'snapshotComplete',
      subject,
      keptByLibrary(subject),
      'remove the decorator, or the option checkpointStore',
    );
  }
  const snapshotComplete = onlyMethod('snapshotComplete', subject);
  if (snapshotComplete === null && checkpoint?.kind === 'reader') {
    throw missing(
      'snapshotComplete',
      subject,
      'its @Checkpoint() is a method, so the library cannot store where the stream begins behind the snapshot',
      'put it on a method (checkpoint) => Promise<void> that stores checkpoint.commitLsn, or keep the position in a CheckpointTable',
    );
  }
  return snapshotComplete === null ? {} : { snapshotComplete };
}

function ofIncremental(
  subject: SinkSubject,
  checkpoint: SinkCheckpoint | undefined,
): SnapshotMethods {
  refuse(
    'snapshotComplete',
    subject,
    `the snapshot of pipeline "${subject.pipeline}" is incremental, and has no end at which the stream begins`,
    'remove the decorator; the last call of @OnSnapshot() has context.complete',
  );
  if (checkpoint === undefined) {
    refuse(
      'snapshotProgress',
      subject,
      keptByLibrary(subject),
      'remove the decorator, or the option checkpointStore',
    );
  }
  const snapshotProgress = onlyMethod('snapshotProgress', subject);
  if (snapshotProgress !== null) return { snapshotProgress };
  if (checkpoint !== undefined && !storesProgress(checkpoint)) {
    throw missing(
      'snapshotProgress',
      subject,
      'its @Checkpoint() cannot keep the progress of a snapshot',
      'put it on a method (context) => Promise<string | null> that reads the context.progress stored last, or keep the position in a CheckpointTable',
    );
  }
  return {};
}

/** A keeper of another kind than `CheckpointTable` may do without. */
function storesProgress(checkpoint: SinkCheckpoint): boolean {
  return (
    checkpoint.kind !== 'reader' &&
    checkpoint.keeper.storeProgress !== undefined
  );
}

function keptByLibrary({ pipeline }: SinkSubject): string {
  return `the library keeps the checkpoint of pipeline "${pipeline}"`;
}

function refuse(
  role: MemberRole,
  subject: SinkSubject,
  why: string,
  instead: string,
): void {
  const member = onlyMember(role, subject);
  if (member === null) return;
  throw new SinkDefinitionError(
    `${placeOf(subject, member)} has ${decoratorOf(role)}, but ${why}; ${instead}.`,
  );
}

function missing(
  role: MemberRole,
  { sinkClass }: SinkSubject,
  why: string,
  place: string,
): SinkDefinitionError {
  return new SinkDefinitionError(
    `${sinkClass.name} has no ${decoratorOf(role)}, but ${why}; ${place}.`,
  );
}
