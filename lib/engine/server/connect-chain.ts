import type { CheckpointContext } from '../model/checkpoint.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import { decodeProgress } from '../model/progress-token.js';
import type { SessionIdentity } from '../model/session-identity.js';
import type { SnapshotProgress } from '../model/snapshot-progress.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import { refusingPlugin } from './capture/refusing-plugin.js';
import type { ChainSubject } from './chain-subject.js';
import {
  furthestOf,
  readCheckpoint,
  type CheckpointPosition,
} from './checkpoint-reading.js';
import { identifySystem } from './identify-system.js';
import { quoteIdentifier } from './identifiers.js';
import { refuseFeedback } from './preflight.js';
import { prepareProgress, readProgress } from './progress-reading.js';
import { probeServer, type ServerFacts } from './server-probe.js';
import { approveIdentity } from './session-identity.js';
import type { CommandSession } from './session.js';
import { locateSlot } from './slot-location.js';
import type { SnapshotPlan } from './snapshot-plan.js';
import { requireCommonHistory, UNKNOWN_TIMELINE } from './timeline.js';

/** `server_version_num` of the first version that synchronizes slots. */
const FIRST_WITH_FAILOVER = 170_000;

/** What the chain found out: all that streaming needs. */
export interface StreamPlan {
  readonly context: CheckpointContext;
  readonly walSenderTimeoutMs: number;
  /** Position of the slot: what the server is told until something is durable on this connection. */
  readonly confirmedFlush: Lsn;
  /** The START_REPLICATION command. */
  readonly command: string;
  /** Of the database, where running transactions are kept on disk; `null` where none is. */
  readonly databaseOid: number | null;
  /** `null` when nothing has to be copied before the stream. */
  readonly snapshot: SnapshotPlan | null;
}

/**
 * Everything between connecting and START_REPLICATION, on every connect anew: who is the server, how far is the sink, is
 * the one the history of the other, is what is captured there, is the slot whole and where the checkpoint says. Creates the
 * slot on a first start.
 *
 * @throws {HaltError} for whatever would lose data
 */
export async function runConnectChain(
  session: CommandSession,
  subject: ChainSubject,
): Promise<StreamPlan> {
  const { options, capture, sink } = subject;
  const identity = await identifySystem(session);
  await approveIdentity(session, subject, identity);
  const server = await probeServer(session);
  const context = contextOf(subject, identity, server);
  const position = await readCheckpoint(sink.checkpoint, context);
  requireFailoverSupport(options, server);
  await requireCommonHistory(session, position, identity);
  await requireServerReached(session, position, server);
  await capture.check(session);
  await refuseFeedback(session, sink.checkpoint, identity, capture);
  requireConsent(position, subject);
  const { database } = identity;
  const { plugin } = capture;
  const place = { database, plugin, inRecovery: server.inRecovery };
  const progress = await progressOf(subject, context, position);
  const claim = { context, place, position, progress };
  const slot = await refusingPlugin(capture, () =>
    locateSlot(session, subject, claim),
  );
  return {
    context,
    walSenderTimeoutMs: server.walSenderTimeoutMs,
    confirmedFlush: slot.confirmedFlush,
    command: startCommand(subject, slot.position, progress),
    databaseOid: options.streaming?.spill ? server.databaseOid : null,
    snapshot: slot.snapshot,
  };
}

/** A standby goes on to another timeline while it streams, when it or its primary's successor is promoted, and does not say so. */
function contextOf(
  subject: ChainSubject,
  identity: SessionIdentity,
  { inRecovery }: ServerFacts,
): CheckpointContext {
  return {
    pipeline: subject.pipeline,
    slotName: subject.options.slotName,
    systemIdentifier: identity.systemIdentifier,
    timeline: inRecovery ? UNKNOWN_TIMELINE : identity.timeline,
  };
}

function requireFailoverSupport(
  { failover }: ResolvedOptions,
  { version }: ServerFacts,
): void {
  if (failover && version < FIRST_WITH_FAILOVER) {
    throw new HaltError('config/failover_unsupported', {
      detail: `the server's version is ${version}`,
    });
  }
}

/** How far a snapshot is; `null` when none was begun, and when none is wanted. */
async function progressOf(
  { options, sink }: ChainSubject,
  context: CheckpointContext,
  position: CheckpointPosition,
): Promise<SnapshotProgress | null> {
  if (options.snapshot === null) return null;
  await prepareProgress(sink);
  const text = await readProgress(sink, context, position);
  return text === null ? null : decodeProgress(text);
}

/**
 * A restored server is behind its consumer; a standby that was started again only has to replay. Its end is read after the
 * checkpoint, which may have moved since.
 */
async function requireServerReached(
  session: CommandSession,
  position: CheckpointPosition,
  { inRecovery }: ServerFacts,
): Promise<void> {
  const furthest = furthestOf(position);
  if (furthest === null) return;
  const { flushedLsn } = await identifySystem(session);
  if (furthest <= flushedLsn) return;
  const detail = `the checkpoint is at ${formatLsn(furthest)}, the server's WAL ends at ${formatLsn(flushedLsn)}`;
  throw inRecovery
    ? new ConnectionFault(`the standby is behind: ${detail}`)
    : new HaltError('data_gap/checkpoint_ahead_of_server', { detail });
}

function requireConsent(
  position: CheckpointPosition,
  { options, sink }: ChainSubject,
): void {
  // A log has nothing to catch up with, and is asked where it begins.
  if (
    options.goForwardOnly ||
    options.snapshot !== null ||
    sink.kind === 'appendLog'
  )
    return;
  if (furthestOf(position) === null) {
    throw new HaltError('config/go_forward_required', {
      detail:
        'the sink has no checkpoint, and rows that exist already would not be delivered',
    });
  }
}

/**
 * The server skips what commits below the position named here, or below the slot's own when that is higher; and messages outside
 * transactions whose record starts below.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-logical-replication.html | Logical streaming replication parameters}
 */
function startCommand(
  { options, capture }: ChainSubject,
  position: CheckpointPosition,
  progress: SnapshotProgress | null,
): string {
  const stored = position.confirmedLsn ?? position.commitLsn ?? 0n;
  // What a snapshot has to see again comes again, and is passed over.
  const again = progress?.uncertain ?? stored;
  const start = again < stored ? again : stored;
  return `START_REPLICATION SLOT ${quoteIdentifier(options.slotName, 'slotName')} LOGICAL ${formatLsn(start)} (${capture.startOptions.join(', ')})`;
}
