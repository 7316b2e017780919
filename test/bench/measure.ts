import type { PostgresServer } from '../support/postgres-server.js';
import { present } from '../support/present.js';
import { waitFor } from '../support/wait-for.js';
import { childrenOf, endedChildrenCpuSeconds } from './process-usage.js';
import type { Reader, ReadResult, ReadTask } from './readers/reader.js';
import type { Figures } from './report.js';
import type { Expected, Source } from './source.js';

const COPY = 'bench_copy';
const FAREWELL_TIMEOUT_MS = 30_000;

/** Lets a reader read a copy of the slot, and measures what that costs. */
export async function measure(
  server: PostgresServer,
  reader: Reader,
  task: Omit<ReadTask, 'slot'>,
): Promise<Figures> {
  const { source, expected } = task;
  const postmaster = present(server.pid);
  await source.copySlot(COPY, reader.plugin);
  try {
    const children = childrenOf(postmaster);
    const cpu = endedChildrenCpuSeconds(postmaster);
    const result = await reader.read({ ...task, slot: COPY });
    await sessionsToEnd(source, postmaster, children);
    const cpuThen = endedChildrenCpuSeconds(postmaster);
    check(result, expected);
    return {
      wallSeconds: result.wallSeconds,
      rowsPerSecond: expected.rows / result.wallSeconds,
      clientCpuSeconds: result.clientCpuSeconds,
      serverCpuSeconds:
        result.serverCpuSeconds ??
        (cpu === null || cpuThen === null ? null : cpuThen - cpu),
      peakRssMb: result.peakRssMb,
    };
  } finally {
    await waitFor(() => source.isAlone(), {
      timeout: FAREWELL_TIMEOUT_MS,
      message: 'the sessions of a reader to end',
    });
    await source.dropSlot(COPY);
  }
}

/** A process counts among the ended children of the server only once the server has noticed. */
async function sessionsToEnd(
  source: Source,
  postmaster: number,
  before: ReadonlySet<string> | null,
): Promise<void> {
  await waitFor(() => source.isAlone(), {
    timeout: FAREWELL_TIMEOUT_MS,
    message: 'the sessions of a reader to end',
  });
  if (before === null) return;
  await waitFor(
    () =>
      [...(childrenOf(postmaster) ?? [])].every((child) => before.has(child)),
    {
      timeout: FAREWELL_TIMEOUT_MS,
      message: 'the server to notice that',
    },
  );
}

/** A reader that has missed something was not faster. */
function check(result: ReadResult, expected: Expected): void {
  for (const name of ['rows', 'messages', 'checksum'] as const) {
    const seen = result[name];
    if (seen !== null && seen !== expected[name])
      throw new Error(
        `Not what is in the source: ${name} ${seen} instead of ${expected[name]}.`,
      );
  }
}
