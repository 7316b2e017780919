import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Change,
  Checkpoint,
  type Lsn,
  OnTransaction,
  ReplicantSink,
} from '../../../lib/index.js';
import { RowChecksum } from '../checksum.js';
import { startApplication } from './application.js';
import { setting, tell } from './settings.js';
import { Stopwatch } from './stopwatch.mjs';

/** Breaks of a slow sink. */
const SLOW = { rows: 1_000, milliseconds: 5 };

/** Reads every value once and keeps nothing. */
@ReplicantSink()
class ChecksumSink {
  readonly checksum = new RowChecksum();
  readonly #slow = setting('SLOW_SINK') === 'on';
  readonly #transactions = Number(setting('TRANSACTIONS'));
  #seen = 0;
  #complete: () => void = () => {};

  /** Resolves when the last transaction has been read. */
  readonly complete = new Promise<void>((resolve) => {
    this.#complete = resolve;
  });

  @Checkpoint()
  async position(): Promise<Lsn | null> {
    return null;
  }

  @OnTransaction()
  async read({
    changes,
  }: {
    readonly changes: readonly Change[] | AsyncIterable<Change>;
  }): Promise<void> {
    if (Symbol.asyncIterator in changes || this.#slow)
      await this.#readSlowly(changes);
    else for (const change of changes) this.#add(change);
    if (++this.#seen === this.#transactions) this.#complete();
  }

  async #readSlowly(
    changes: Iterable<Change> | AsyncIterable<Change>,
  ): Promise<void> {
    for await (const change of changes) {
      this.#add(change);
      if (this.#slow && this.checksum.rows % SLOW.rows === 0)
        await sleep(SLOW.milliseconds);
    }
  }

  #add(change: Change): void {
    if (change.op !== 'insert') throw new Error('The loads only insert.');
    this.checksum.add(change.record);
  }
}

let stopwatch = new Stopwatch();
const { application, sink } = await startApplication(ChecksumSink, () => {
  stopwatch = new Stopwatch();
});
await sink.complete;
const usage = stopwatch.stop();
await application.close();
await tell({
  ...usage,
  rows: sink.checksum.rows,
  messages: null,
  checksum: sink.checksum.sum,
});
process.exit(0);
