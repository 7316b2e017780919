import { expect, it } from 'vitest';
import type { DecoderOptions } from '../lib/engine/options/decoder-options.js';
import { capture } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';

const suite = useServer();

const DECODERS: DecoderOptions[] = [
  { decoder: 'wal2json', tables: [['public', 't']] },
  { decoder: 'pglogical', replicationSets: 'default' },
];

it.each(DECODERS)(
  'decoder/plugin_missing: a server without the plugin of $decoder',
  async (options) => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, { target, ...options });
    pipeline.start();
    await haltedFor(pipeline, 'decoder/plugin_missing');
    expect(await slotAndCheckpoint(source, target)).toEqual({
      slots: [],
      checkpoints: [],
    });
  },
);
