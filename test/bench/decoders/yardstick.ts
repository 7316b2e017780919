import type { Figures, Results } from '../report.js';

/** Adds `cpuOfPgoutput` to what was measured: how many times the client's CPU time of the decoder `pgoutput` a reader has used. */
export function withCpuOfPgoutput(results: Results): Results {
  return new Map(
    [...results].map(([load, readers]) => {
      const yardstick = readers.get('pgoutput')?.['clientCpuSeconds'] ?? null;
      return [
        load,
        new Map(
          [...readers].map(([reader, figures]): [string, Figures] => [
            reader,
            { ...figures, cpuOfPgoutput: times(figures, yardstick) },
          ]),
        ),
      ];
    }),
  );
}

function times(
  { clientCpuSeconds = null }: Figures,
  yardstick: number | null,
): number | null {
  if (clientCpuSeconds === null || yardstick === null) return null;
  return Math.round((clientCpuSeconds / yardstick) * 100) / 100;
}
