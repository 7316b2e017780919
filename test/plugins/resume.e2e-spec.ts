import { describe, expect, it } from 'vitest';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { range } from '../support/copy.js';
import { terminateBackend, walsenderPid } from '../support/logical-slot.js';
import {
  capturedBy,
  PLUGIN_DECODERS,
  pluginSource,
} from '../support/plugin-sources.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import {
  type Call,
  insertEach,
  recorded,
  recording,
} from '../support/recording.js';
import type { TestDatabase } from '../support/test-database.js';
import { waitFor } from '../support/wait-for.js';

const MODES: readonly {
  readonly mode: string;
  readonly options: (target: TestDatabase) => Partial<PipelineOptions>;
  /** Rows that may be recorded twice. */
  readonly repeated: number;
}[] = [
  { mode: 'its own checkpoint', options: () => ({}), repeated: 0 },
  {
    mode: 'a checkpoint of the library',
    options: ({ connection }) => ({ checkpointStore: { connection } }),
    repeated: 1,
  },
];

describe.skipIf(noPluginServer)('a sink with', () => {
  const suite = usePluginServer();

  describe.each(MODES.map(({ mode, ...rest }) => [mode, rest] as const))(
    '%s',
    (_, { options, repeated }) => {
      it.each(PLUGIN_DECODERS)(
        'has every row when the walsender of %s ends in the middle, and its process after that (77)',
        async (decoder) => {
          const { source, target } = await pluginSource(suite);
          const slot = `slot_${source.name}`;
          const terminate = async (): Promise<void> =>
            terminateBackend(source, await walsenderPid(source, slot));
          const calls: number[] = [];
          const seen = ({ transactions }: Call): void => {
            for (const { commitLsn } of transactions)
              calls.push(Number(commitLsn));
          };
          const all = { target, ...capturedBy(decoder), ...options(target) };
          // The connection is lost before a row is committed, and after another.
          const first = await recording(source, {
            ...all,
            inside: async (call) => {
              seen(call);
              if (call.ids.includes(3)) await terminate();
            },
            after: async ({ ids }) => {
              if (ids.includes(5)) await terminate();
            },
          });
          const reconnects: unknown[] = [];
          first.pipeline.on('reconnect', (event) => reconnects.push(event));
          first.pipeline.start();
          await first.pipeline.whenStreaming();
          await insertEach(source, range(1, 6));
          await waitFor(() => first.committed.flat().includes(6), {
            timeout: 20_000,
          });
          expect(reconnects).toHaveLength(2);
          await first.pipeline.stop();
          await insertEach(source, range(7, 9));
          const second = await recording(source, {
            ...all,
            inside: async (call) => seen(call),
          });
          second.pipeline.start();
          await second.pipeline.whenStreaming();
          await second.pipeline.caughtUp();
          const rows = await recorded(target);
          expect([...new Set(rows)]).toEqual(range(1, 9));
          expect(rows.length - 9).toBeLessThanOrEqual(repeated);
          for (const position of calls)
            expect(
              calls.filter((other) => other === position).length,
            ).toBeLessThanOrEqual(2);
        },
        40_000,
      );
    },
  );
});
