import { OUTPUT_PLUGINS } from '../../support/captured.js';
import { programPath } from '../child-process.js';
import { NodeReader } from '../readers/node-reader.js';
import type { Reader } from '../readers/reader.js';

/** A reader for each decoder, in the order in which they take turns. */
export function decoderReaders(): Reader[] {
  return Object.entries(OUTPUT_PLUGINS).map(
    ([decoder, plugin]) =>
      new NodeReader({
        name: decoder,
        options: `a Nest application with the decoder ${decoder} (exact values), the sink reads every value into a checksum`,
        hasSink: true,
        script: programPath('consume-application.js'),
        plugin,
        settings: { DECODER: decoder },
      }),
  );
}
