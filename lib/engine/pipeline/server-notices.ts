import type { HaltError } from '../model/halt.js';
import type { CaptureSet } from '../server/capture/capture-set.js';
import type { ServerNotice } from '../source/replication-session.js';

/** Judges what the server says of its own accord while it streams on one connection. */
export class ServerNotices {
  /** Some are sent for as long as their cause lasts. */
  readonly #told = new Set<string>();

  constructor(
    private readonly capture: Pick<CaptureSet, 'noticed'>,
    private readonly warning: (message: string) => void,
  ) {}

  /** Warns of a notice, once; or says why the stream cannot be followed after it. */
  judge(notice: ServerNotice): HaltError | null {
    const halt = this.capture.noticed(notice);
    if (halt !== null) return halt;
    const message = `the server sent a notice of severity ${notice.severity} with SQLSTATE ${notice.code}`;
    if (!this.#told.has(message)) {
      this.#told.add(message);
      this.warning(message);
    }
    return null;
  }
}
