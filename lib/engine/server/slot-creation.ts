import { watchCommand, type WatchSubject } from './command-watch.js';
import { endWithClient } from './end-with-client.js';
import { isServerError } from './error-classes.js';
import {
  withSqlSession,
  type CommandSession,
  type TextRow,
} from './session.js';
import { readCreation } from './slot-blocker.js';
import { terminateClaimant } from './slot-lock.js';

/** Who is told about a slot that takes long to be created. */
export interface CreationSubject extends WatchSubject {
  readonly slotName: string;
  /** The creation is cancelled on the server. The work never rejects. */
  withdrawing(work: Promise<void>): void;
  warning(message: string): void;
}

const WITHDRAW_TIMEOUT_MS = 10_000;

/**
 * A session of which the patient command, the creation of a slot, is watched from another session: what it waits for is
 * reported, a connection that died without a word is noticed, and when its own connection ends it is cancelled on the
 * server, which would otherwise go on waiting and keep the name of the slot.
 */
export function watchCreation(
  session: CommandSession,
  subject: CreationSubject,
): CommandSession {
  return {
    query: (text, values) => session.query(text, values),
    queryPatiently: (text) => runWatched(session, text, subject),
  };
}

async function runWatched(
  session: CommandSession,
  text: string,
  subject: CreationSubject,
): Promise<readonly TextRow[]> {
  await endWithClient(session);
  const [row] = await session.query(
    'select pg_catalog.pg_backend_pid() as pid',
  );
  const pid = row?.['pid'] ?? '';
  const { signal } = subject.target;
  let withdrawn = false;
  const withdraw = (): void => {
    if (withdrawn) return;
    withdrawn = true;
    subject.withdrawing(withdrawCreation(pid, subject));
  };
  signal.addEventListener('abort', withdraw, { once: true });
  const end = watchCommand(
    'slot',
    (asking) => readCreation(asking, pid, subject.slotName),
    subject,
  );
  try {
    return await session.queryPatiently(text);
  } catch (error) {
    if (!isServerError(error)) withdraw();
    throw error;
  } finally {
    signal.removeEventListener('abort', withdraw);
    end();
  }
}

/** Never rejects. */
async function withdrawCreation(
  pid: string,
  subject: CreationSubject,
): Promise<void> {
  const { target, slotName } = subject;
  const signal = AbortSignal.timeout(WITHDRAW_TIMEOUT_MS);
  try {
    await withSqlSession({ ...target, signal }, (session) =>
      terminateClaimant(session, slotName, pid),
    );
  } catch {
    subject.warning(
      `the creation of slot ${slotName} could not be cancelled on the server, which may still finish it`,
    );
  }
}
