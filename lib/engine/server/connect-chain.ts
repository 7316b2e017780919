import type {
  CheckpointContext,
  CheckpointKeeper,
  SinkCheckpoint,
} from '../model/checkpoint.js';
import { HaltError } from '../model/halt.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import type { SessionIdentity } from '../model/session-identity.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import {
  available,
  furthestOf,
  readCheckpoint,
  type CheckpointPosition,
} from './checkpoint-reading.js';
import { identifySystem } from './identify-system.js';
import { publicationNamesLiteral, quoteIdentifier } from './identifiers.js';
import { refuseSelfFeeding, requirePublications } from './publications.js';
import { probeServer } from './server-probe.js';
import type { CommandSession } from './session.js';
import { createSlot, judgeSlot, readSlot } from './slot.js';
import { slotHeldError } from './slot-holder.js';
import { claimSlot } from './slot-lock.js';

const PLUGIN = 'pgoutput';

/** What the chain works for. */
export interface ChainSubject {
  readonly pipeline: string;
  readonly options: ResolvedOptions;
  readonly checkpoint: SinkCheckpoint;
}

/** What the chain found out: all that streaming needs. */
export interface StreamPlan {
  readonly context: CheckpointContext;
  readonly walSenderTimeoutMs: number;
  /** Position of the slot: what the server is told until something is durable on this connection. */
  readonly confirmedFlush: Lsn;
  /** The START_REPLICATION command. */
  readonly command: string;
}

/**
 * Everything between connecting and START_REPLICATION, on every connect anew: who is the server, how far is the sink,
 * do the publications exist, is the slot whole and where the checkpoint says. Creates the slot on a first start.
 *
 * @throws {HaltError} for whatever would lose data
 */
export async function runConnectChain(
  session: CommandSession,
  subject: ChainSubject,
): Promise<StreamPlan> {
  const { options, checkpoint } = subject;
  const identity = await identifySystem(session);
  const context = contextOf(subject, identity);
  const position = await readCheckpoint(checkpoint, context);
  const server = await probeServer(session);
  await requireServerReached(session, position);
  await requirePublications(session, options.publications);
  if (checkpoint.kind === 'keeper')
    await refuseOwnTable(session, checkpoint.keeper, identity, options);
  requireConsent(position, options);
  const slot = await locateSlot(session, subject, identity, position);
  return {
    context,
    walSenderTimeoutMs: server.walSenderTimeoutMs,
    confirmedFlush: slot.confirmedFlush,
    command: startCommand(options, slot.position),
  };
}

function contextOf(
  subject: ChainSubject,
  identity: SessionIdentity,
): CheckpointContext {
  return {
    pipeline: subject.pipeline,
    slotName: subject.options.slotName,
    systemIdentifier: identity.systemIdentifier,
    timeline: identity.timeline,
  };
}

/** A restored server is behind its consumer. Its end is read after the checkpoint, which may have moved since. */
async function requireServerReached(
  session: CommandSession,
  position: CheckpointPosition,
): Promise<void> {
  const furthest = furthestOf(position);
  if (furthest === null) return;
  const { flushedLsn } = await identifySystem(session);
  if (furthest > flushedLsn) {
    throw new HaltError('data_gap/checkpoint_ahead_of_server', {
      detail: `the checkpoint is at ${formatLsn(furthest)}, the server's WAL ends at ${formatLsn(flushedLsn)}`,
    });
  }
}

async function refuseOwnTable(
  session: CommandSession,
  keeper: CheckpointKeeper,
  identity: SessionIdentity,
  options: ResolvedOptions,
): Promise<void> {
  const home = await available(keeper.home());
  // A role that may not ask for the identifier is taken to be on the same server: the OID of the table still decides.
  const sameServer =
    home.systemIdentifier === null ||
    home.systemIdentifier === identity.systemIdentifier;
  if (sameServer && home.database === identity.database) {
    await refuseSelfFeeding(session, options.publications, home);
  }
}

function requireConsent(
  position: CheckpointPosition,
  options: ResolvedOptions,
): void {
  if (furthestOf(position) === null && !options.goForwardOnly) {
    throw new HaltError('config/go_forward_required', {
      detail:
        'the sink has no checkpoint, and rows that exist already would not be delivered',
    });
  }
}

interface LocatedSlot {
  readonly confirmedFlush: Lsn;
  readonly position: CheckpointPosition;
}

async function locateSlot(
  session: CommandSession,
  subject: ChainSubject,
  identity: SessionIdentity,
  position: CheckpointPosition,
): Promise<LocatedSlot> {
  const { slotName } = subject.options;
  await claimSlot(session, slotName);
  const verdict = judgeSlot(
    await readSlot(session, slotName),
    identity.database,
    PLUGIN,
  );
  switch (verdict.kind) {
    case 'halt':
      throw new HaltError(verdict.code, { detail: verdict.detail });
    case 'unfinished':
      throw await slotHeldError(session, slotName);
    case 'absent':
      return beginSlot(session, subject, position);
    case 'usable':
      return resumeSlot(
        subject,
        contextOf(subject, identity),
        verdict.confirmedFlush,
        position,
      );
  }
}

async function beginSlot(
  session: CommandSession,
  { options, checkpoint }: ChainSubject,
  position: CheckpointPosition,
): Promise<LocatedSlot> {
  const furthest = furthestOf(position);
  if (furthest !== null) {
    throw new HaltError('data_gap/slot_missing_with_checkpoint', {
      detail: `the checkpoint is at ${formatLsn(furthest)}, but there is no slot ${options.slotName}`,
    });
  }
  const consistentPoint = await createSlot(session, options.slotName, PLUGIN);
  return adopt(checkpoint, consistentPoint);
}

async function resumeSlot(
  { checkpoint }: ChainSubject,
  context: CheckpointContext,
  confirmedFlush: Lsn,
  position: CheckpointPosition,
): Promise<LocatedSlot> {
  if (furthestOf(position) === null) return adopt(checkpoint, confirmedFlush);
  if (checkpoint.kind === 'reader' || !isBehind(position, confirmedFlush))
    return { confirmedFlush, position };
  // An instance that streamed until a moment ago may have moved both since the checkpoint was read; it stores first.
  const current = await readCheckpoint(checkpoint, context);
  if (isBehind(current, confirmedFlush)) {
    const stored = formatLsn(furthestOf(current) ?? 0n);
    throw new HaltError('data_gap/slot_moved', {
      detail: `the slot is at ${formatLsn(confirmedFlush)}, the last position that was stored is ${stored}`,
    });
  }
  return { confirmedFlush, position: current };
}

function isBehind(position: CheckpointPosition, confirmedFlush: Lsn): boolean {
  return confirmedFlush > (furthestOf(position) ?? 0n);
}

/** Stores where the slot begins, so that a later start can tell whether somebody moved or dropped it. */
async function adopt(
  checkpoint: SinkCheckpoint,
  boundary: Lsn,
): Promise<LocatedSlot> {
  if (checkpoint.kind === 'keeper')
    await available(checkpoint.keeper.confirm(boundary));
  return {
    confirmedFlush: boundary,
    position: { commitLsn: null, confirmedLsn: boundary },
  };
}

/**
 * The server skips what commits below the position named here, or below the slot's own when that is higher.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-logical-replication.html | Logical streaming replication parameters}
 */
function startCommand(
  options: ResolvedOptions,
  position: CheckpointPosition,
): string {
  const start = position.confirmedLsn ?? position.commitLsn ?? 0n;
  return (
    `START_REPLICATION SLOT ${quoteIdentifier(options.slotName, 'slotName')} LOGICAL ${formatLsn(start)}` +
    ` (proto_version '1', publication_names ${publicationNamesLiteral(options.publications)})`
  );
}
