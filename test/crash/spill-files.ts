import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';

/** What applications leave of running transactions on disk. */
export class SpillFiles {
  /** Files of a process that the one after it has left, though it streamed, or that were there after an end in order. */
  left = 0;
  /** Processes that were killed while they had files. */
  kills = 0;

  /**
   * @param folder - that of the option
   */
  constructor(readonly folder: string) {}

  /**
   * @param began - before the process that was killed was started, in milliseconds since 1970-01-01 UTC
   * @param streamed - whether it came to stream
   */
  async afterKill(began: number, streamed: boolean): Promise<void> {
    const births = await this.#births();
    if (births.some((birth) => birth >= began)) this.kills += 1;
    if (streamed) this.left += births.filter((birth) => birth < began).length;
  }

  async afterEnd(): Promise<void> {
    this.left += (await this.#births()).length;
  }

  /** When each of the files was made. */
  async #births(): Promise<number[]> {
    const names = await readdir(this.folder, { recursive: true }).catch(
      () => [],
    );
    const files = names.filter((name) => name.endsWith('.spill'));
    return Promise.all(
      files.map(
        async (name) => (await stat(path.join(this.folder, name))).birthtimeMs,
      ),
    );
  }
}
