import { setTimeout as sleep } from 'node:timers/promises';
import type { SlotWait } from '../telemetry/slot-wait.js';
import { endWithClient } from './end-with-client.js';
import { isServerError } from './error-classes.js';
import {
  withSqlSession,
  type CommandSession,
  type SessionTarget,
  type TextRow,
} from './session.js';
import { readCreation } from './slot-blocker.js';
import { terminateClaimant } from './slot-lock.js';

/** Who is told about a slot that takes long to be created. */
export interface CreationSubject {
  readonly target: SessionTarget;
  readonly slotName: string;
  /** What it waits for, again and again while it does; `null` in the end. */
  waiting(wait: SlotWait | null): void;
  /** The creation is cancelled on the server. The work never rejects. */
  withdrawing(work: Promise<void>): void;
  warning(message: string): void;
  /** The server does not create the slot any more, and its answer does not come: the connection is dead. */
  lost(): void;
}

/** Time after which a creation is said to wait. */
const PATIENCE_MS = 10_000;
const REFRESH_MS = 5_000;
/** An answer may be on its way when the creation is not seen for the first time. */
const LOOKS_IN_VAIN = 2;
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
  const done = new AbortController();
  let withdrawn = false;
  const withdraw = (): void => {
    if (withdrawn) return;
    withdrawn = true;
    subject.withdrawing(withdrawCreation(pid, subject));
  };
  signal.addEventListener('abort', withdraw, { once: true });
  void report(pid, subject, AbortSignal.any([signal, done.signal]));
  try {
    return await session.queryPatiently(text);
  } catch (error) {
    if (!isServerError(error)) withdraw();
    throw error;
  } finally {
    signal.removeEventListener('abort', withdraw);
    done.abort();
    subject.waiting(null);
  }
}

/** Never rejects. */
async function report(
  pid: string,
  subject: CreationSubject,
  signal: AbortSignal,
): Promise<void> {
  const since = new Date().toISOString();
  const target = { ...subject.target, signal };
  let inVain = 0;
  try {
    await sleep(PATIENCE_MS, undefined, { signal });
    while (inVain < LOOKS_IN_VAIN) {
      const progress = await readQuietly(target, pid, subject.slotName);
      if (signal.aborted) return;
      const blocker = progress?.blocker ?? null;
      if (blocker !== null) subject.waiting({ ...blocker, since });
      inVain = progress?.underWay === false ? inVain + 1 : 0;
      await sleep(REFRESH_MS, undefined, { signal });
    }
    subject.lost();
  } catch {
    // The wait is over.
  }
}

/** `null` too when the server takes no second session: the creation itself may still succeed. */
async function readQuietly(
  target: SessionTarget,
  pid: string,
  slotName: string,
) {
  try {
    return await withSqlSession(target, (session) =>
      readCreation(session, pid, slotName),
    );
  } catch {
    return null;
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
