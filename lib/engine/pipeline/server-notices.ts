import { HaltError } from '../model/halt.js';
import type { ServerNotice } from '../source/replication-session.js';

/** Judges what the server says of its own accord while it streams on one connection. */
export class ServerNotices {
  /** Some are sent for as long as their cause lasts. */
  readonly #told = new Set<string>();

  constructor(private readonly warning: (message: string) => void) {}

  /** Warns of a notice, once; or says why the stream cannot be followed after it. */
  judge(notice: ServerNotice): HaltError | null {
    if (skipsPublication(notice))
      return new HaltError('publication/missing', {
        detail: 'a publication does not exist at this point of the WAL',
      });
    const message = `the server sent a notice of severity ${notice.severity} with SQLSTATE ${notice.code}`;
    if (!this.#told.has(message)) {
      this.#told.add(message);
      this.warning(message);
    }
    return null;
  }
}

/**
 * Whether this is the warning by which PostgreSQL 18 says that it passes over a publication that is missing. Its SQLSTATE is that of
 * others too, such as that of a slot which waits for a standby; text and severity are in the language of the server. So the
 * file tells, and where that is missing, it is taken for the worse.
 */
function skipsPublication({ code, file }: ServerNotice): boolean {
  return code === '55000' && (file === 'pgoutput.c' || file === '');
}
