import type {
  CheckpointContext,
  CheckpointKeeper,
} from '../model/checkpoint.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import { encodeProgress } from '../model/progress-token.js';
import {
  isBegun,
  pendingProgress,
  type SnapshotProgress,
} from '../model/snapshot-progress.js';
import type { ChainSubject, ConsultedSink } from './chain-subject.js';
import {
  available,
  furthestOf,
  readCheckpoint,
  type CheckpointPosition,
} from './checkpoint-reading.js';
import type { CommandSession } from './session.js';
import { slotHeldError } from './slot-holder.js';
import { claimSlot } from './slot-lock.js';
import { approveOrigin } from './slot-origin.js';
import type { SnapshotPlan } from './snapshot-plan.js';
import {
  createSlot,
  dropSlot,
  enableFailover,
  judgeSlot,
  readSlot,
  type SlotPlace,
  type SlotVerdict,
} from './slot.js';

/** Where the stream begins. */
export interface LocatedSlot {
  readonly confirmedFlush: Lsn;
  readonly position: CheckpointPosition;
  /** `null` when nothing has to be copied before the stream. */
  readonly snapshot: SnapshotPlan | null;
}

/** What the slot is held against. */
export interface SlotClaim {
  readonly context: CheckpointContext;
  readonly place: SlotPlace;
  readonly position: CheckpointPosition;
  /** How far a snapshot is; `null` when none was begun. */
  readonly progress: SnapshotProgress | null;
}

type UsableSlot = Extract<SlotVerdict, { kind: 'usable' }>;

/**
 * Finds the slot, or creates it where nothing was ever delivered, and decides whether it goes with the checkpoint.
 *
 * @throws {HaltError} when it does not, or cannot be used
 * @throws {SlotHeldError} when another session has it
 * @throws {ConnectionFault} when it is not ready yet
 */
export async function locateSlot(
  session: CommandSession,
  subject: ChainSubject,
  claim: SlotClaim,
): Promise<LocatedSlot> {
  const { context, place } = claim;
  await claimSlot(session, context.slotName);
  const row = await readSlot(session, context.slotName);
  const verdict = judgeSlot(row, place);
  switch (verdict.kind) {
    case 'halt':
      throw new HaltError(verdict.code, { detail: verdict.detail });
    case 'unfinished':
      throw await slotHeldError(session, context.slotName);
    case 'unplaced':
      throw withoutPosition(subject.sink);
    case 'unpromoted':
      throw beforePromotion(subject);
    case 'absent':
      return beginSlot(session, subject, claim);
    case 'usable':
      return findSlot(session, subject, claim, verdict);
  }
}

/** Never takes 0 for a position that cannot be read. */
function withoutPosition({ slotOrigin }: ConsultedSink): HaltError {
  return new HaltError(
    slotOrigin === undefined
      ? 'slot/not_usable'
      : 'slot_origin/slot_origin_unavailable',
    { detail: 'the server tells no position of the slot' },
  );
}

function beforePromotion({ options }: ChainSubject): Error {
  const detail =
    'the slot is a synchronized copy on a standby that is not promoted';
  return options.leaderElection
    ? new ConnectionFault(detail)
    : new HaltError('slot_synced_unpromoted', { detail });
}

async function beginSlot(
  session: CommandSession,
  subject: ChainSubject,
  { place: { plugin }, position, progress }: SlotClaim,
): Promise<LocatedSlot> {
  const { slotName, failover, snapshot } = subject.options;
  const furthest = furthestOf(position);
  if (furthest !== null) {
    throw new HaltError('data_gap/slot_missing_with_checkpoint', {
      detail: `the checkpoint is at ${formatLsn(furthest)}, but there is no slot ${slotName}`,
    });
  }
  // An initial copy is made anew, of everything: its progress is of one whose position was not stored any more.
  if (snapshot?.mode !== 'initial' && progress !== null && isBegun(progress)) {
    throw new HaltError('data_gap/slot_missing_with_progress', {
      detail: `a snapshot was begun at ${formatLsn(progress.floor)}, but there is no slot ${slotName}`,
    });
  }
  const { consistentPoint, snapshotName } = await createSlot(
    session,
    slotName,
    {
      plugin,
      failover,
      exportSnapshot: snapshot?.mode === 'initial',
    },
  );
  if (snapshotName !== null)
    return copiedFirst(subject, consistentPoint, snapshotName);
  if (snapshot?.mode === 'incremental')
    return copiedBeside(subject, consistentPoint);
  await approveOrigin(session, subject, consistentPoint, false);
  return adopt(subject.sink, consistentPoint);
}

/** No position is stored before everything is copied: whoever is killed before that has to begin anew. */
function copiedFirst(
  { unfinishedSlot }: ChainSubject,
  consistentPoint: Lsn,
  snapshotName: string,
): LocatedSlot {
  unfinishedSlot.consistentPoint = consistentPoint;
  return {
    confirmedFlush: consistentPoint,
    position: { commitLsn: null, confirmedLsn: consistentPoint },
    snapshot: { consistentPoint, snapshotName },
  };
}

/** That rows have to be copied is stored before the position, which alone would say that they came another way. */
async function copiedBeside(
  { sink }: ChainSubject,
  boundary: Lsn,
): Promise<LocatedSlot> {
  const progress = pendingProgress(boundary);
  if (sink.snapshotProgress === undefined && sink.checkpoint.kind !== 'reader')
    await available(storeProgress(sink.checkpoint.keeper, progress));
  return adopt(sink, boundary);
}

/** What a snapshot makes of a slot that is there. */
async function findSlot(
  session: CommandSession,
  subject: ChainSubject,
  claim: SlotClaim,
  slot: UsableSlot,
): Promise<LocatedSlot> {
  const { snapshot, slotName } = subject.options;
  const { position, progress, context } = claim;
  if (furthestOf(position) !== null || snapshot === null)
    return resumeSlot(session, subject, claim, slot);
  const current = await readCheckpoint(subject.sink.checkpoint, context);
  if (furthestOf(current) !== null)
    throw new ConnectionFault('another process has stored the checkpoint');
  if (snapshot.mode === 'incremental') {
    return progress === null
      ? copiedBeside(subject, slot.confirmedFlush)
      : resumeSlot(session, subject, claim, slot);
  }
  if (subject.unfinishedSlot.consistentPoint === slot.confirmedFlush) {
    await dropSlot(session, context.slotName);
    return beginSlot(session, subject, claim);
  }
  throw new HaltError('snapshot_incomplete', {
    detail: `the slot ${slotName} is at ${formatLsn(slot.confirmedFlush)} and nothing was stored behind a snapshot`,
  });
}

async function resumeSlot(
  session: CommandSession,
  subject: ChainSubject,
  { context, position }: SlotClaim,
  slot: UsableSlot,
): Promise<LocatedSlot> {
  const { confirmedFlush } = slot;
  const current = await refuseMoved(
    subject.sink,
    context,
    confirmedFlush,
    position,
  );
  const furthest = furthestOf(current);
  const begins = furthest === null || confirmedFlush > furthest;
  await approveOrigin(
    session,
    subject,
    begins ? confirmedFlush : furthest,
    true,
  );
  if (subject.options.failover && slot.failoverLacking) {
    await enableFailover(session, context.slotName);
    subject.warning(
      `the slot ${context.slotName} lacked the property failover, which is set now`,
    );
  }
  // What a sink reads by itself lies below the slot as soon as it has confirmed the end of a transaction.
  const keeps = subject.sink.checkpoint.kind !== 'reader';
  return furthest === null || (keeps && begins)
    ? adopt(subject.sink, confirmedFlush)
    : { confirmedFlush, position: current, snapshot: null };
}

/**
 * Compares the slot with the checkpoint, and returns the checkpoint as it is now. A sink that keeps no positions cannot be
 * held against the slot; a log decides by itself about a slot that was moved, when it is asked about its position.
 */
async function refuseMoved(
  sink: ConsultedSink,
  context: CheckpointContext,
  confirmedFlush: Lsn,
  position: CheckpointPosition,
): Promise<CheckpointPosition> {
  if (furthestOf(position) === null || sink.checkpoint.kind === 'reader')
    return position;
  if (!isBehind(position, confirmedFlush)) return position;
  // An instance that streamed until a moment ago may have moved both since the checkpoint was read; it stores first.
  const current = await readCheckpoint(sink.checkpoint, context);
  if (!isBehind(current, confirmedFlush) || decidesItself(sink)) return current;
  const stored = formatLsn(furthestOf(current) ?? 0n);
  throw new HaltError('data_gap/slot_moved', {
    detail: `the slot is at ${formatLsn(confirmedFlush)}, the last position that was stored is ${stored}`,
  });
}

function decidesItself({ kind, slotOrigin }: ConsultedSink): boolean {
  return kind === 'appendLog' && slotOrigin !== undefined;
}

function isBehind(position: CheckpointPosition, confirmedFlush: Lsn): boolean {
  return confirmedFlush > (furthestOf(position) ?? 0n);
}

/** Stores where the slot begins, so that a later start can tell whether somebody moved or dropped it. */
async function adopt(
  { checkpoint }: ConsultedSink,
  boundary: Lsn,
): Promise<LocatedSlot> {
  if (checkpoint.kind !== 'reader')
    await available(checkpoint.keeper.confirm(boundary));
  return {
    confirmedFlush: boundary,
    position: { commitLsn: null, confirmedLsn: boundary },
    snapshot: null,
  };
}

async function storeProgress(
  keeper: Pick<CheckpointKeeper, 'storeProgress'>,
  progress: SnapshotProgress,
): Promise<void> {
  await keeper.storeProgress?.(encodeProgress(progress));
}
