import { Checkpoint, type Lsn } from '../../../lib/index.js';

/** Keeps nothing, and knows when it has read everything. */
export abstract class ReadingSink {
  #finish: () => void = () => {};

  /** Resolves when everything has been read. */
  readonly complete = new Promise<void>((resolve) => {
    this.#finish = resolve;
  });

  @Checkpoint()
  async position(): Promise<Lsn | null> {
    return null;
  }

  /** Everything has been read. */
  protected finish(): void {
    this.#finish();
  }
}
