import type { Client } from 'pg';
import { ConnectionFault } from '../model/connection-fault.js';
import { deferred } from '../model/deferred.js';
import type { CopyDataListener } from '../server/copy-data-splitter.js';
import { endWithClient } from '../server/end-with-client.js';
import { destroySocket, rawConnection } from '../server/pg-internals.js';
import { SilenceWatch } from '../server/silence-watch.js';
import {
  closeClient,
  openClient,
  type CommandSession,
  type SessionTarget,
} from '../server/session.js';
import {
  READ_PID,
  type Watch,
  watchedSession,
  watchOf,
} from '../server/watched-session.js';
import { PageQueue, type PageLimits } from './page-queue.js';
import { Pages } from './pages.js';

/**
 * Row security makes the server refuse instead of leaving rows out, and names in row filters and expressions are found
 * only where they say they are.
 */
const READING_SETTINGS = `select pg_catalog.set_config('row_security', 'off', false), pg_catalog.set_config('search_path', '', false), ${READ_PID}`;

/** Where rows go: nowhere while nothing is copied. */
interface RowOutlet {
  take: CopyDataListener | null;
}

/**
 * An ordinary session that reads rows by COPY, under an empty search_path. It has no time-out of its own while it waits for rows, however long the
 * server takes to find the first: a server that is still at it is told from a connection that died without a word.
 */
export class CopySession {
  readonly #client: Client;
  readonly #outlet: RowOutlet;
  /** There is none before the process on the server is known. */
  #watch: Watch = () => () => {};
  readonly #lost = deferred<never>();

  private constructor(
    client: Client,
    outlet: RowOutlet,
    { signal }: SessionTarget,
  ) {
    this.#client = client;
    this.#outlet = outlet;
    const tearDown = (): void => this.destroy();
    signal.addEventListener('abort', tearDown, { once: true });
    client.on('error', (error) => this.#lost.reject(error));
    client.once('end', () => {
      signal.removeEventListener('abort', tearDown);
      this.#lost.reject(new ConnectionFault('a reading connection was lost'));
    });
  }

  /** Connects. The session is torn down when the signal of the target is aborted. */
  static async open(target: SessionTarget): Promise<CopySession> {
    const outlet: RowOutlet = { take: null };
    const client = await openClient(target, 'sql', (bytes, start, end) =>
      outlet.take?.(bytes, start, end),
    );
    const session = new CopySession(client, outlet, target);
    try {
      target.signal.throwIfAborted();
      const [row] = await session.commands.query(READING_SETTINGS);
      session.#watch = watchOf(client, row?.['pid'] ?? '', target);
      await endWithClient(session.commands);
      return session;
    } catch (error) {
      session.destroy();
      throw error;
    }
  }

  get commands(): CommandSession {
    return watchedSession(this.#client, this.#watch);
  }

  /**
   * Rejects with the reason when the connection is lost or closed; it may be left unhandled. Never resolves. While the consumer of a copy works
   * a loss may go unnoticed.
   */
  get lost(): Promise<never> {
    return this.#lost.promise;
  }

  /**
   * Runs a `COPY … TO STDOUT` in the text format and gives its rows in pages. While the consumer works the socket is
   * paused: besides its page, there is in memory no more than what Node had read before. One copy at a time; a consumer
   * that leaves it before its end costs the connection.
   */
  copy(sql: string, limits: PageLimits): Pages {
    const { stream } = rawConnection(this.#client);
    const queue = new PageQueue(limits, stream);
    const silence = new SilenceWatch(stream, this.#watch);
    this.#outlet.take = (bytes, start, end) => {
      // Each message is one row and its newline. Without the name of an encoding it is faster.
      const line = bytes.toString(undefined, start, end - 1);
      queue.add(line, end - start - 1);
    };
    this.#client.query(sql).then(
      () => {
        silence.end();
        queue.end();
      },
      (error: unknown) => {
        silence.end();
        queue.fail(error);
      },
    );
    return new Pages(queue, () => {
      this.#outlet.take = null;
      if (!queue.settled) this.destroy();
      stream.resume();
    });
  }

  /** Cuts the connection. */
  destroy(): void {
    destroySocket(this.#client);
  }

  /** Says goodbye to the server. Never rejects. */
  async close(): Promise<void> {
    await closeClient(this.#client);
  }
}
