import { describe, expect, it } from 'vitest';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { range } from '../support/copy.js';
import {
  capturedBy,
  PLUGIN_DECODERS,
  pluginSource,
} from '../support/plugin-sources.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import {
  batchesOf,
  insertEach,
  recorded,
  recording,
} from '../support/recording.js';
import type { TestDatabase } from '../support/test-database.js';

/** How transactions and the checkpoint of the library go together. */
const MODES: readonly {
  readonly mode: string;
  readonly options: (target: TestDatabase) => Partial<PipelineOptions>;
  readonly batches: readonly number[];
}[] = [
  {
    mode: 'one checkpoint for each',
    options: ({ connection }) => ({ checkpointStore: { connection } }),
    batches: [],
  },
  {
    mode: 'one checkpoint for several',
    options: ({ connection }) => ({
      checkpointStore: {
        connection,
        batch: { maxTransactions: 3, maxDelayMs: 600_000 },
      },
    }),
    batches: [3, 3, 3],
  },
  {
    mode: 'batches of a sink with its own checkpoint',
    options: () => ({
      batchDelivery: { maxTransactions: 3, maxDelayMs: 600_000 },
    }),
    batches: [3, 3, 3],
  },
];

describe.skipIf(noPluginServer)('transactions are delivered with', () => {
  const suite = usePluginServer();

  describe.each(MODES.map(({ mode, ...rest }) => [mode, rest] as const))(
    '%s',
    (_, { options, batches: expected }) => {
      it.each(PLUGIN_DECODERS)(
        'by %s, which goes on behind it after a stop',
        async (decoder) => {
          const { source, target } = await pluginSource(suite);
          const { pipeline, failed } = await recording(source, {
            target,
            ...capturedBy(decoder),
            ...options(target),
          });
          const batches = batchesOf(pipeline);
          pipeline.start();
          await pipeline.whenStreaming();
          await insertEach(source, range(1, 9));
          await pipeline.caughtUp();
          expect(batches.map(({ transactions }) => transactions)).toEqual(
            expected,
          );
          await pipeline.stop();
          await insertEach(source, range(10, 12));
          pipeline.start();
          await pipeline.whenStreaming();
          await pipeline.caughtUp();
          expect(failed).toEqual([]);
          expect(await recorded(target)).toEqual(range(1, 12));
        },
      );
    },
  );
});
