import {
  type Change,
  OnTransaction,
  type PipelineOptions,
  ReplicantSink,
} from '../../../lib/index.js';
import { RowChecksum } from '../checksum.js';
import { readToTheEnd } from './application.js';
import { LoopWatch } from './loop-watch.js';
import { ReadingSink } from './reading-sink.js';
import { setting, tell } from './settings.js';
import { Stopwatch } from './stopwatch.mjs';
import { wallClock } from './wall-clock.js';

const MAX_SPILL_BYTES = 16 * 1024 ** 3;

/** Reads every value once, and looks at the clock at the first and at the last change. */
@ReplicantSink()
class LargeSink extends ReadingSink {
  readonly checksum = new RowChecksum();
  /** Microseconds since 1970-01-01 UTC. */
  first: number | null = null;
  last: number | null = null;
  readonly #now = wallClock();
  readonly #rows = Number(setting('ROWS'));

  @OnTransaction()
  async read({
    changes,
  }: {
    readonly changes: readonly Change[] | AsyncIterable<Change>;
  }): Promise<void> {
    for await (const change of changes) {
      this.first ??= this.#now();
      if (change.op !== 'insert') throw new Error('The loads only insert.');
      this.checksum.add(change.record);
      if (this.checksum.rows === this.#rows) this.last = this.#now();
    }
    this.finish();
  }
}

function options(): Partial<PipelineOptions> {
  const maxInflightBytes = process.env['MAX_INFLIGHT_BYTES'];
  const dir = process.env['SPILL_DIR'];
  return {
    publication: 'p',
    goForwardOnly: true,
    ...(maxInflightBytes === undefined
      ? {}
      : { maxInflightBytes: Number(maxInflightBytes) }),
    ...(setting('STREAMING') === 'on'
      ? {
          streaming:
            dir === undefined
              ? {}
              : { spill: { dir, maxSpillBytes: MAX_SPILL_BYTES } },
        }
      : {}),
  };
}

let stopwatch = new Stopwatch();
let loop: LoopWatch | null = null;
await readToTheEnd({
  sink: LargeSink,
  options: options(),
  streaming() {
    stopwatch = new Stopwatch();
    loop = new LoopWatch();
    void tell({ streaming: true });
  },
  result: ({ checksum: { rows, sum }, first, last }) => ({
    ...stopwatch.stop(),
    ...loop?.stop(),
    first,
    last,
    rows,
    checksum: sum,
  }),
});
