import { PostgresCheckpointStore } from '../checkpoint/checkpoint-store.js';
import type { CheckpointStore } from '../model/checkpoint.js';
import type { ResolvedCheckpointStoreOptions } from '../options/delivery-options.js';
import type { ConnectionOption } from '../options/pipeline-options.js';
import type { Tell } from '../telemetry/pipeline-events.js';
import type { SinkWork } from './work.js';

/** Opens the checkpoint that the library keeps, as the option `checkpointStore` says. */
export class LibraryCheckpoint {
  readonly #connection: ConnectionOption;
  readonly #options: ResolvedCheckpointStoreOptions;
  readonly #tell: Tell;
  readonly #work: SinkWork;

  /** @param work - is told that the checkpoint is tried again */
  constructor(
    connection: ConnectionOption,
    options: ResolvedCheckpointStoreOptions,
    tell: Tell,
    work: SinkWork,
  ) {
    this.#connection = connection;
    this.#options = options;
    this.#tell = tell;
    this.#work = work;
  }

  /** @param signal ends it: the pipeline has stopped, or nothing of it runs any more */
  open(applicationName: string, signal: AbortSignal): CheckpointStore {
    const { maxRetries, retryBackoffMs } = this.#options;
    return new PostgresCheckpointStore({
      target: { connection: this.#connection, applicationName, signal },
      options: this.#options,
      retrying: (reason, attempt) => {
        this.#work.tryAgain(performance.now());
        this.#tell('retry', {
          of: 'checkpoint',
          reason,
          attempt,
          maxRetries,
          delayMilliseconds: retryBackoffMs,
        });
      },
    });
  }
}
