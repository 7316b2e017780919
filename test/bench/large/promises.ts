import type { Figures, Results } from '../report.js';

/** Of the whole process. */
const MOST_RSS_MB = 200;
/** With ten times the rows. */
const MOST_GROWTH = 1.1;
const LONGEST_BLOCK_MS = 20;

/** What the readers of large transactions have not kept; empty when all is well. What nobody could measure is none. */
export function brokenPromises(results: Results): string[] {
  return [
    ...memory(results),
    ...[...results].flatMap(([load, readers]) => [
      ...speed(load, readers),
      ...liveness(load, readers),
    ]),
  ];
}

/** What `streamed` needs grows with the transaction, as it says. */
function memory(results: Results): string[] {
  return ['plain', 'spilled'].flatMap((reader) => {
    const peaks = [...results].map(
      ([load, readers]) => [load, of(readers, reader, 'peakRssMb')] as const,
    );
    const small = of(results.get('rows1M'), reader, 'peakRssMb');
    const large = of(results.get('rows10M'), reader, 'peakRssMb');
    return [
      ...peaks
        .filter(([, peak]) => peak !== null && peak > MOST_RSS_MB)
        .map(
          ([load, peak]) =>
            `${load}, ${reader}: ${peak} MB of memory, above ${MOST_RSS_MB}`,
        ),
      ...(small !== null && large !== null && large > small * MOST_GROWTH
        ? [
            `${reader}: ${large} MB of memory instead of ${small} with ten times the rows`,
          ]
        : []),
    ];
  });
}

function speed(load: string, readers: ReadonlyMap<string, Figures>): string[] {
  const plain = of(readers, 'plain', 'lastChangeMs');
  return ['streamed', 'spilled'].flatMap((reader) => {
    const delay = of(readers, reader, 'lastChangeMs');
    return delay !== null && plain !== null && delay >= plain
      ? [
          `${load}, ${reader}: the last change came after ${delay} ms, and after ${plain} without streaming`,
        ]
      : [];
  });
}

function liveness(
  load: string,
  readers: ReadonlyMap<string, Figures>,
): string[] {
  return [...readers.keys()].flatMap((reader) => {
    const blocked = of(readers, reader, 'loopBlockedMs');
    return blocked !== null && blocked > LONGEST_BLOCK_MS
      ? [
          `${load}, ${reader}: the event loop did not turn for ${blocked} ms, above ${LONGEST_BLOCK_MS}`,
        ]
      : [];
  });
}

function of(
  readers: ReadonlyMap<string, Figures> | undefined,
  reader: string,
  figure: string,
): number | null {
  return readers?.get(reader)?.[figure] ?? null;
}
