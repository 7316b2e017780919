import type { CheckpointStoreOptions } from '../../lib/engine/options/delivery-options.js';
import type { Pipeline } from '../../lib/engine/pipeline.js';
import type { PipelineEvents } from '../../lib/engine/telemetry/pipeline-events.js';
import { capture, type Capture, type CaptureOptions } from './capture.js';
import type { TestDatabase } from './test-database.js';

/** A pipeline whose checkpoint the library keeps. */
export interface LibraryCapture extends Capture {
  readonly retries: PipelineEvents['retry'][];
}

/** Like {@link capture}, with the option `checkpointStore` in the target unless `store` says otherwise. */
export function libraryCapture(
  source: TestDatabase,
  target: TestDatabase,
  store: Partial<CheckpointStoreOptions> = {},
  options: Partial<CaptureOptions> = {},
): LibraryCapture {
  const captured = capture(source, {
    target,
    checkpointStore: {
      connection: { ...target.connection },
      retryBackoffMs: 50,
      ...store,
    },
    ...options,
  });
  const retries: PipelineEvents['retry'][] = [];
  captured.pipeline.on('retry', (event) => retries.push(event));
  return { ...captured, retries };
}

/** Starts it, and inserts a first row that becomes durable. */
export async function streamingAfterOne(
  pipeline: Pipeline,
  source: TestDatabase,
): Promise<void> {
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await pipeline.caughtUp();
}
