import type { Logger } from '@nestjs/common';
import type { Pipeline } from '../engine/pipeline.js';

/**
 * Time after the first pipeline streams until the hint is given. An application context is initialised inside its
 * factory, so that `enableShutdownHooks()` can only be called afterwards.
 */
const PATIENCE_MS = 1_000;

/** Says once that SIGTERM will kill the process in the middle of a transaction, when nothing listens to it. */
export class ShutdownHint {
  #timer: NodeJS.Timeout | null = null;
  #cancelled = false;

  constructor(private readonly logger: Logger) {}

  /** Looks a moment after the first of these pipelines streams. */
  watch(pipelines: readonly Pipeline[]): void {
    for (const pipeline of pipelines) {
      pipeline.on('state', ({ to }) => {
        if (to === 'streaming') this.#schedule();
      });
    }
  }

  cancel(): void {
    this.#cancelled = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#cancelled || this.#timer !== null) return;
    this.#timer = setTimeout(() => this.#hint(), PATIENCE_MS).unref();
  }

  #hint(): void {
    if (process.listenerCount('SIGTERM') > 0) return;
    this.logger.warn(
      'Nothing listens to SIGTERM, so it ends the process without draining and the running transaction is repeated after the next start; call app.enableShutdownHooks().',
    );
  }
}
