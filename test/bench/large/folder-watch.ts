import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const INTERVAL_MS = 50;

/** Looks how much the files below a folder hold, until it is told to end. */
export class FolderWatch {
  #peak = 0;
  readonly #end = new AbortController();
  readonly #ended: Promise<void>;

  constructor(private readonly folder: string) {
    this.#ended = this.#watch();
  }

  /** @returns the most bytes that they held together */
  async end(): Promise<number> {
    this.#end.abort();
    await this.#ended;
    return this.#peak;
  }

  async #watch(): Promise<void> {
    while (!this.#end.signal.aborted) {
      this.#peak = Math.max(this.#peak, await bytesBelow(this.folder));
      await sleep(INTERVAL_MS);
    }
  }
}

async function bytesBelow(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(path.join(folder, name)).then(
        (file) => (file.isFile() ? file.size : 0),
        // It is gone meanwhile.
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
