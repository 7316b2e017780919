import {
  type Lsn,
  OnSnapshot,
  OnSnapshotComplete,
  OnTransaction,
  ReplicantSink,
  type SnapshotCheckpoint,
  type SnapshotContext,
  SnapshotProgress,
} from '../../../lib/index.js';
import { readToTheEnd } from './application.js';
import { ReadingSink } from './reading-sink.js';
import { setting } from './settings.js';
import { Stopwatch } from './stopwatch.mjs';

const CHUNK_ROWS = 10_000;
const initial = setting('MODE') === 'initial';

/** Counts rows, and keeps in memory what a sink has to store. */
class CountingSink extends ReadingSink {
  rows = 0;
  #position: Lsn | null = null;

  override async position(): Promise<Lsn | null> {
    return this.#position;
  }

  @OnSnapshot()
  async copy(
    rows: readonly unknown[],
    { complete }: SnapshotContext,
  ): Promise<void> {
    this.rows += rows.length;
    if (complete) this.finish();
  }

  @OnTransaction()
  async stream(): Promise<void> {}

  protected completed(commitLsn: Lsn): void {
    this.#position = commitLsn;
    this.finish();
  }
}

@ReplicantSink()
class InitialSink extends CountingSink {
  @OnSnapshotComplete()
  async copied({ commitLsn }: SnapshotCheckpoint): Promise<void> {
    this.completed(commitLsn);
  }
}

@ReplicantSink()
class IncrementalSink extends CountingSink {
  #progress: string | null = null;

  @SnapshotProgress()
  async progress(): Promise<string | null> {
    return this.#progress;
  }

  @OnSnapshot()
  override async copy(
    rows: readonly unknown[],
    context: SnapshotContext,
  ): Promise<void> {
    this.#progress = context.progress;
    await super.copy(rows, context);
  }
}

let idleRssMb = 0;
let stopwatch = new Stopwatch();
await readToTheEnd<CountingSink>({
  sink: initial ? InitialSink : IncrementalSink,
  options: {
    publication: 'p',
    types: setting('TYPES') === 'text' ? 'text' : 'exact',
    snapshot: initial ? true : { mode: 'incremental', chunkRows: CHUNK_ROWS },
  },
  starting() {
    idleRssMb = process.memoryUsage().rss / 1024 / 1024;
    stopwatch = new Stopwatch();
  },
  result: ({ rows }) => ({ ...stopwatch.stop(), idleRssMb, rows }),
});
