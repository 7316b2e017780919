import type { AttachedSink, Sink } from '../deliver/sink.js';
import type { LibraryCheckpoint } from './library-checkpoint.js';
import { PipelineStateError } from './state-error.js';

/** Makes the sink of one start; what it has open ends with the signal. */
export type SinkMaker = (signal: AbortSignal) => Sink;

/**
 * Joins a sink with its checkpoint: its own, or that of the library.
 *
 * @param library - the option `checkpointStore`; `null` without it
 * @throws {@link PipelineStateError} when there are none or two
 */
export function sinkMaker(
  pipeline: string,
  sink: AttachedSink,
  library: LibraryCheckpoint | null,
  applicationName: string,
): SinkMaker {
  const { checkpoint } = sink;
  if (library === null) {
    if (checkpoint === undefined)
      throw new PipelineStateError(
        `The sink of pipeline "${pipeline}" has no checkpoint: give it one, or the pipeline the option checkpointStore.`,
      );
    return () => ({ ...sink, checkpoint });
  }
  if (checkpoint !== undefined)
    throw new PipelineStateError(
      `The sink of pipeline "${pipeline}" has a checkpoint of its own, and the option checkpointStore gives it another: remove one of them.`,
    );
  return (signal) => {
    const keeper = library.open(applicationName, signal);
    return { ...sink, checkpoint: { kind: 'store', keeper } };
  };
}
