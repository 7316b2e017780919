import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Checkpoint,
  getPipelineToken,
  type Lsn,
  OnSnapshot,
  OnSnapshotComplete,
  OnTransaction,
  type Pipeline,
  ReplicantModule,
  ReplicantSink,
  type SnapshotCheckpoint,
  type SnapshotContext,
  SnapshotProgress,
} from '../../../lib/index.js';
import { endWithBench, setting, sourceConnection, tell } from './settings.js';
import { Stopwatch } from './stopwatch.mjs';

const CHUNK_ROWS = 10_000;
const initial = setting('MODE') === 'initial';

/** Counts rows, and keeps in memory what a sink has to store. */
class CountingSink {
  rows = 0;
  #position: Lsn | null = null;
  #complete: () => void = () => {};

  /** Resolves when everything is copied. */
  readonly complete = new Promise<void>((resolve) => {
    this.#complete = resolve;
  });

  @Checkpoint()
  async position(): Promise<Lsn | null> {
    return this.#position;
  }

  @OnSnapshot()
  async copy(
    rows: readonly unknown[],
    { complete }: SnapshotContext,
  ): Promise<void> {
    this.rows += rows.length;
    if (complete) this.#complete();
  }

  @OnTransaction()
  async stream(): Promise<void> {}

  protected completed(commitLsn: Lsn): void {
    this.#position = commitLsn;
    this.#complete();
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

const Sink = initial ? InitialSink : IncrementalSink;

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      useFactory: () => ({
        connection: sourceConnection(),
        slotName: setting('SLOT'),
        publication: 'p',
        types: setting('TYPES') === 'text' ? 'text' : 'exact',
        autoStart: false,
        snapshot: initial
          ? true
          : { mode: 'incremental', chunkRows: CHUNK_ROWS },
      }),
    }),
  ],
  providers: [Sink],
})
class BenchApplication {}

endWithBench();
const application = await NestFactory.createApplicationContext(
  BenchApplication,
  { logger: ['warn', 'error', 'fatal'] },
);
application.enableShutdownHooks();
const pipeline = application.get<Pipeline>(getPipelineToken());
pipeline.on('state', ({ to }) => {
  // A second connection would copy anew: nothing to measure.
  if (to === 'reconnecting' || to === 'halted') process.exit(1);
});
const sink = application.get<CountingSink>(Sink);
const idleRssMb = process.memoryUsage().rss / 1024 / 1024;
const stopwatch = new Stopwatch();
pipeline.start();
await sink.complete;
const usage = stopwatch.stop();
await application.close();
await tell({ ...usage, idleRssMb, rows: sink.rows });
process.exit(0);
