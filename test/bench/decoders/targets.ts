import type { Target } from '../targets.js';

/** Those of `consume` that decoders are compared with. */
export const DECODER_LOADS: readonly string[] = ['rows100', 'single'];

/** What decoding has to reach, with loads at their full size. */
export const DECODER_TARGETS: readonly Target[] = [
  {
    loads: DECODER_LOADS,
    readers: ['wal2json'],
    figure: 'cpuOfPgoutput',
    bound: 2.5,
    side: 'at most',
  },
];
