import type {
  CheckpointContext,
  CheckpointKeeper,
  CheckpointReader,
  SinkCheckpoint,
} from '../model/checkpoint.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { errorClass } from '../model/error-class.js';
import { HaltError } from '../model/halt.js';
import { watermarkBelow, type Lsn } from '../model/lsn.js';

/** What was read: how far the sink is, in both kinds of position. */
export interface CheckpointPosition {
  /** Commit position of the last transaction applied. */
  readonly commitLsn: Lsn | null;
  /** Boundary below which nothing is left to come. */
  readonly confirmedLsn: Lsn | null;
  /** Of the server when they were stored; absent where none is stored. */
  readonly timeline?: number;
  /** See {@link StoredCheckpoint.relations}. */
  readonly relations?: string | null;
  /** See {@link StoredCheckpoint.progress}. */
  readonly progress?: string | null;
}

const NOTHING: CheckpointPosition = { commitLsn: null, confirmedLsn: null };

/**
 * Reads the checkpoint for the server that answers on the replication connection.
 *
 * @throws {HaltError} when it belongs to another server, or when the sink's method returns anything but a position or null
 * @throws {ConnectionFault} when reading fails
 */
export async function readCheckpoint(
  origin: SinkCheckpoint,
  context: CheckpointContext,
): Promise<CheckpointPosition> {
  return origin.kind === 'reader'
    ? askSink(origin.read, context)
    : readKeeper(origin.keeper, context);
}

/** The commit position up to which transactions are skipped; `null` when none is. */
export function watermarkOf(position: CheckpointPosition): Lsn | null {
  const { commitLsn, confirmedLsn } = position;
  if (confirmedLsn === null) return commitLsn;
  const below = watermarkBelow(confirmedLsn);
  return commitLsn === null || below > commitLsn ? below : commitLsn;
}

/** The highest of both positions; `null` when nothing was ever stored. */
export function furthestOf(position: CheckpointPosition): Lsn | null {
  const { commitLsn, confirmedLsn } = position;
  if (commitLsn === null || confirmedLsn === null)
    return commitLsn ?? confirmedLsn;
  return commitLsn > confirmedLsn ? commitLsn : confirmedLsn;
}

async function readKeeper(
  keeper: Pick<CheckpointKeeper, 'identify' | 'load'>,
  context: CheckpointContext,
): Promise<CheckpointPosition> {
  keeper.identify(context);
  const stored = await available(keeper.load());
  if (stored === null) return NOTHING;
  if (stored.systemIdentifier !== context.systemIdentifier) {
    throw new HaltError('session_identity/other_server', {
      detail: `the checkpoint belongs to system ${stored.systemIdentifier}, the connection leads to ${context.systemIdentifier}`,
    });
  }
  return stored;
}

async function askSink(
  read: CheckpointReader,
  context: CheckpointContext,
): Promise<CheckpointPosition> {
  const answer: unknown = await available(
    Promise.resolve().then(() => read(context)),
  );
  if (answer === null) return NOTHING;
  if (typeof answer !== 'bigint' || answer < 0n) {
    throw new HaltError('checkpoint/invalid', {
      detail: `the @Checkpoint() method returned ${typeof answer}`,
    });
  }
  return answer === 0n ? NOTHING : { commitLsn: answer, confirmedLsn: null };
}

/** Names the failure without its text, which may quote a row or a secret. What the library itself says passes. */
export async function available<T>(
  work: Promise<T>,
  what = 'the checkpoint',
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof HaltError || error instanceof ConnectionFault)
      throw error;
    throw new ConnectionFault(
      `${what} is not available (${errorClass(error)})`,
    );
  }
}
