import type { ConnectionSubject } from './subject.js';
import { runConnectChain, type StreamPlan } from '../server/connect-chain.js';
import { hasSqlstate, type Phase } from '../server/error-classes.js';
import { watchCreation } from '../server/slot-creation.js';
import { slotHeldError } from '../server/slot-holder.js';
import { ReplicationSession } from '../source/replication-session.js';

/** SQLSTATE by which START_REPLICATION says that another session streams from the slot. */
const SLOT_IN_USE = '55006';

/**
 * Opens a session, runs the connect chain on it and hands both to `use`, which keeps the session unless it fails.
 *
 * @param entered called when the session is open: errors are those of this phase from then on
 */
export async function withPlannedSession<T>(
  subject: ConnectionSubject,
  entered: (phase: Phase) => void,
  use: (session: ReplicationSession, plan: StreamPlan) => Promise<T>,
): Promise<T> {
  const { slotName } = subject.options;
  const session = await ReplicationSession.open(subject.target);
  const { signal } = subject.target;
  const cut = (): void => session.destroy();
  signal.addEventListener('abort', cut, { once: true });
  entered('connecting');
  try {
    signal.throwIfAborted();
    const commands = watchCreation(session.commands, {
      ...subject,
      slotName,
      lost: cut,
    });
    const plan = await runConnectChain(commands, {
      pipeline: subject.pipeline,
      options: subject.options,
      capture: subject.capture,
      sink: subject.sink,
      unfinishedSlot: subject.unfinishedSlot,
      warning: (message) => subject.warning(message),
    });
    return await use(session, plan);
  } catch (error) {
    const told = hasSqlstate(error, SLOT_IN_USE)
      ? await slotHeldError(session.commands, slotName)
      : error;
    session.destroy();
    throw told;
  } finally {
    signal.removeEventListener('abort', cut);
  }
}
