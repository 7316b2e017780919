import { ANSWER_TIMEOUT_MS } from '../server/session.js';
import type { ReplicationSession } from './replication-session.js';
import { statusInterval } from './status-timing.js';

/**
 * Lets a session that waits for others say something, as often as a stream does: what stands on its way forgets connections that are silent, and
 * does not tell. A session that gets no answer within twice the time after which the server gives up, or half a minute, is cut.
 */
export class Heartbeat {
  readonly #session: Pick<ReplicationSession, 'commands' | 'destroy'>;
  readonly #interval: number;
  readonly #limit: number;
  #timer: NodeJS.Timeout | null = null;
  #asked = false;

  constructor(
    session: Pick<ReplicationSession, 'commands' | 'destroy'>,
    walSenderTimeoutMs: number,
  ) {
    this.#session = session;
    this.#interval = statusInterval(walSenderTimeoutMs);
    this.#limit =
      walSenderTimeoutMs === 0
        ? ANSWER_TIMEOUT_MS
        : Math.min(ANSWER_TIMEOUT_MS, walSenderTimeoutMs * 2);
  }

  /** Begins, unless it has begun. The session exports no snapshot from then on. */
  start(): void {
    this.#timer ??= setInterval(() => void this.#beat(), this.#interval);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Never rejects: whoever waits for the session learns of its end. */
  async #beat(): Promise<void> {
    if (this.#asked) return;
    this.#asked = true;
    const late = setTimeout(() => this.#session.destroy(), this.#limit);
    try {
      await this.#session.commands.query('select');
    } catch {
      this.stop();
    } finally {
      clearTimeout(late);
      this.#asked = false;
    }
  }
}
