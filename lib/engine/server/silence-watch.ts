import type { Duplex } from 'node:stream';
import type { Watch } from './watched-session.js';

/** How often it is looked whether something has come. */
const LOOK_MS = 10_000;

/**
 * Watches a session from which nothing comes although it is read. Long silence may be all right, when the server searches for the first row: so it is
 * asked, see {@link Watch}.
 */
export class SilenceWatch {
  readonly #socket: Pick<Duplex, 'isPaused'>;
  readonly #watch: Watch;
  readonly #timer: NodeJS.Timeout;
  #heard = false;
  #endWatch: (() => void) | null = null;

  constructor(socket: Pick<Duplex, 'isPaused'>, watch: Watch) {
    this.#socket = socket;
    this.#watch = watch;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  /** Something came. Called for every row, so it only takes a note. */
  heard(): void {
    this.#heard = true;
  }

  end(): void {
    clearInterval(this.#timer);
    this.#hears();
  }

  #look(): void {
    if (this.#heard || this.#socket.isPaused()) this.#hears();
    else this.#endWatch ??= this.#watch(0);
    this.#heard = false;
  }

  #hears(): void {
    this.#endWatch?.();
    this.#endWatch = null;
  }
}
