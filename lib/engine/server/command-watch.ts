import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Blocker,
  type SourceWait,
  WAIT_PATIENCE_MS,
} from '../telemetry/source-wait.js';
import {
  type CommandSession,
  type SessionTarget,
  withSqlSession,
} from './session.js';

/** How a command looks from another session. */
export interface CommandProgress {
  /** The server is at it. */
  readonly underWay: boolean;
  /** What it waits for; `null` when that is nothing which lasts. */
  readonly blocker: Blocker | null;
}

/** Who is told about a command that takes long. */
export interface WatchSubject {
  readonly target: SessionTarget;
  /** What it waits for, again and again while it does; `null` in the end. */
  waiting(wait: SourceWait | null): void;
  /** The server is not at it any more, and its answer does not come: the connection is dead. */
  lost(): void;
}

const REFRESH_MS = 5_000;
/** An answer may be on its way when the command is not seen for the first time. */
const LOOKS_IN_VAIN = 2;

/**
 * Watches a command from another session when it takes long: what it waits for is told, and a connection that died without
 * a word is noticed.
 *
 * @param look - asks how the command gets on
 * @param patienceMs - time after which it is looked for the first time
 * @returns ends the watch
 */
export function watchCommand(
  what: SourceWait['what'],
  look: (session: CommandSession) => Promise<CommandProgress>,
  subject: WatchSubject,
  patienceMs = WAIT_PATIENCE_MS,
): () => void {
  const since = new Date().toISOString();
  const done = new AbortController();
  let told = false;
  const watching = setTimeout(() => {
    void report(
      look,
      {
        ...subject,
        target: {
          ...subject.target,
          signal: AbortSignal.any([subject.target.signal, done.signal]),
        },
      },
      (blocker) => {
        told = true;
        subject.waiting({ ...blocker, what, since });
      },
    );
  }, patienceMs);
  return () => {
    clearTimeout(watching);
    done.abort();
    if (told) subject.waiting(null);
  };
}

/** Never rejects. */
async function report(
  look: (session: CommandSession) => Promise<CommandProgress>,
  { target, lost }: Pick<WatchSubject, 'target' | 'lost'>,
  tell: (blocker: Blocker) => void,
): Promise<void> {
  const { signal } = target;
  let inVain = 0;
  try {
    for (;;) {
      const progress = await lookQuietly(target, look);
      if (signal.aborted) return;
      if (progress !== null && progress.blocker !== null)
        tell(progress.blocker);
      inVain = progress?.underWay === false ? inVain + 1 : 0;
      if (inVain === LOOKS_IN_VAIN) return lost();
      await sleep(REFRESH_MS, undefined, { signal });
    }
  } catch {
    // The wait is over.
  }
}

/** `null` too when the server takes no second session: the command itself may still succeed. */
async function lookQuietly(
  target: SessionTarget,
  look: (session: CommandSession) => Promise<CommandProgress>,
): Promise<CommandProgress | null> {
  try {
    return await withSqlSession(target, look);
  } catch {
    return null;
  }
}
