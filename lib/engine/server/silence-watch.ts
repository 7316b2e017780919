import type { Duplex } from 'node:stream';
import type { Watch } from './watched-session.js';

/** How often it is looked whether something has come. More often than the server is asked, so that whatever comes in between counts. */
const LOOK_MS = 1_000;
/** Looks in vain after which the server is asked. */
const SILENT_LOOKS = 10;

/**
 * Watches a session from which nothing comes although it is read: no byte, since a large row may be under way for long. Long silence may be all right,
 * when the server searches for the first row: so it is asked, see {@link Watch}.
 */
export class SilenceWatch {
  readonly #socket: Pick<Duplex, 'isPaused' | 'on' | 'off'>;
  readonly #watch: Watch;
  readonly #timer: NodeJS.Timeout;
  readonly #listener = (): void => {
    this.#heard = true;
  };
  #heard = false;
  #silentLooks = 0;
  #endWatch: (() => void) | null = null;

  constructor(socket: Pick<Duplex, 'isPaused' | 'on' | 'off'>, watch: Watch) {
    this.#socket = socket;
    this.#watch = watch;
    socket.on('data', this.#listener);
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  end(): void {
    clearInterval(this.#timer);
    this.#socket.off('data', this.#listener);
    this.#hears();
  }

  #look(): void {
    // Whoever does not read cannot tell, and neither can the server: it waits until there is room.
    if (this.#heard || this.#socket.isPaused()) this.#hears();
    else this.#silentLooks += 1;
    this.#heard = false;
    if (this.#silentLooks >= SILENT_LOOKS) this.#endWatch ??= this.#watch(0);
  }

  #hears(): void {
    this.#silentLooks = 0;
    this.#endWatch?.();
    this.#endWatch = null;
  }
}
