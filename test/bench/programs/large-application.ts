import {
  type Change,
  Checkpoint,
  type Lsn,
  OnTransaction,
  type PipelineOptions,
  ReplicantSink,
} from '../../../lib/index.js';
import { RowChecksum } from '../checksum.js';
import { startApplication } from './application.js';
import { LoopWatch } from './loop-watch.js';
import { setting, tell } from './settings.js';
import { Stopwatch } from './stopwatch.mjs';
import { wallClock } from './wall-clock.js';

const MAX_SPILL_BYTES = 16 * 1024 ** 3;

/** Reads every value once, keeps nothing, and looks at the clock at the first and at the last change. */
@ReplicantSink()
class LargeSink {
  readonly checksum = new RowChecksum();
  /** Microseconds since 1970-01-01 UTC. */
  first: number | null = null;
  last: number | null = null;
  readonly #now = wallClock();
  readonly #rows = Number(setting('ROWS'));
  #complete: () => void = () => {};

  /** Resolves when the transaction has been read to its end. */
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
    for await (const change of changes) {
      this.first ??= this.#now();
      if (change.op !== 'insert') throw new Error('The loads only insert.');
      this.checksum.add(change.record);
      if (this.checksum.rows === this.#rows) this.last = this.#now();
    }
    this.#complete();
  }
}

function options(): Partial<PipelineOptions> {
  const maxInflightBytes = process.env['MAX_INFLIGHT_BYTES'];
  const dir = process.env['SPILL_DIR'];
  return {
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
const { application, sink } = await startApplication(
  LargeSink,
  () => {
    stopwatch = new Stopwatch();
    loop = new LoopWatch();
    void tell({ streaming: true });
  },
  options(),
);
await sink.complete;
const usage = { ...stopwatch.stop(), ...(loop as LoopWatch | null)?.stop() };
await application.close();
const { rows, sum } = sink.checksum;
await tell({
  ...usage,
  first: sink.first,
  last: sink.last,
  rows,
  checksum: sum,
});
process.exit(0);
