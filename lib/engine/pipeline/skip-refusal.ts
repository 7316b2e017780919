import type { Halt } from '../model/halt.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import type { PipelineState } from '../telemetry/pipeline-state.js';

/** What decides whether a pipeline may pass over what its sink cannot apply. */
export interface SkipFacts {
  readonly state: PipelineState;
  /** It was asked to stop and has not stopped. */
  readonly stopping: boolean;
  readonly halt: Halt | null;
}

/** Why it may not, and what to do, to follow on the name of the pipeline; `null` when it may. Pure. */
export function skipRefusal(
  { state, stopping, halt }: SkipFacts,
  lsn: Lsn,
): string | null {
  if (stopping) return 'is being stopped: wait for that, and start it again.';
  if (halt === null) {
    return `has not halted (${state}): only what it has halted at can be passed over.`;
  }
  const { code } = halt;
  if (code !== 'sink_failed' && !code.startsWith('sink_failed/')) {
    return `has halted with ${code}, which passing over a transaction does not mend: see halt.remedy.`;
  }
  if (halt.lsn === null) {
    return 'has halted at several transactions, of which nobody knows the one that failed: with the option sinkRetry they are delivered one by one, so that the next halt names it.';
  }
  if (halt.lsn !== lsn) {
    return `has halted at ${formatLsn(halt.lsn)}, and only that can be passed over: give halt.lsn.`;
  }
  return null;
}
