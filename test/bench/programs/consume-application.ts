import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Change,
  OnTransaction,
  ReplicantSink,
} from '../../../lib/index.js';
import { capturedBy, decoderNamed } from '../../support/captured.js';
import { RowChecksum } from '../checksum.js';
import { readToTheEnd } from './application.js';
import { ReadingSink } from './reading-sink.js';
import { setting } from './settings.js';
import { Stopwatch } from './stopwatch.mjs';

/** Breaks of a slow sink. */
const SLOW = { rows: 1_000, milliseconds: 5 };

/** Reads every value once. */
@ReplicantSink()
class ChecksumSink extends ReadingSink {
  readonly checksum = new RowChecksum();
  readonly #slow = setting('SLOW_SINK') === 'on';
  readonly #transactions = Number(setting('TRANSACTIONS'));
  #seen = 0;

  @OnTransaction()
  async read({
    changes,
  }: {
    readonly changes: readonly Change[] | AsyncIterable<Change>;
  }): Promise<void> {
    if (Symbol.asyncIterator in changes || this.#slow)
      await this.#readSlowly(changes);
    else for (const change of changes) this.#add(change);
    if (++this.#seen === this.#transactions) this.finish();
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
await readToTheEnd({
  sink: ChecksumSink,
  options: {
    ...capturedBy(decoderNamed(process.env['DECODER'] ?? 'pgoutput'), [
      ['public', 'orders'],
    ]),
    goForwardOnly: true,
    readPacing: process.env['READ_PACING'] !== 'off',
  },
  streaming() {
    stopwatch = new Stopwatch();
  },
  result: ({ checksum: { rows, sum } }) => ({
    ...stopwatch.stop(),
    rows,
    messages: null,
    checksum: sum,
  }),
});
