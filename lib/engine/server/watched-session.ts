import type { Client } from 'pg';
import { watchCommand } from './command-watch.js';
import { destroySocket } from './pg-internals.js';
import { readProcessProgress } from './process-progress.js';
import {
  type CommandSession,
  commandSession,
  type SessionTarget,
  withClient,
} from './session.js';

/**
 * Begins to watch what a session does now; what is returned ends that.
 *
 * @param patienceMs - time after which it is looked for the first time
 */
export type Watch = (patienceMs?: number) => () => void;

/** Gives the process id of the session to {@link watchOf}, in a column `pid`. */
export const READ_PID = 'pg_catalog.pg_backend_pid() as pid';

/**
 * Watches a session that copies rows from another session: a lock that others have is told to the target, and a connection that died without a
 * word is cut.
 *
 * @param pid - of the session on the server
 */
export function watchOf(
  client: Client,
  pid: string,
  target: SessionTarget,
): Watch {
  return (patienceMs) =>
    watchCommand(
      'copy',
      (session) => readProcessProgress(session, pid),
      {
        target,
        waiting: (wait) => target.waiting?.(wait),
        lost: () => destroySocket(client),
      },
      patienceMs,
    );
}

/** The statements of a client, of which the patient ones are watched. */
export function watchedSession(client: Client, watch: Watch): CommandSession {
  const session = commandSession(client);
  return {
    query: (text, values) => session.query(text, values),
    async queryPatiently(text) {
      const end = watch();
      try {
        return await session.queryPatiently(text);
      } finally {
        end();
      }
    },
  };
}

/** Runs `work` on a short-lived ordinary session, of which the patient statements are watched. */
export function withWatchedSession<T>(
  target: SessionTarget,
  work: (session: CommandSession) => Promise<T>,
): Promise<T> {
  return withClient(target, async (client) => {
    const [row] = await commandSession(client).query(`select ${READ_PID}`);
    const watch = watchOf(client, row?.['pid'] ?? '', target);
    return work(watchedSession(client, watch));
  });
}
