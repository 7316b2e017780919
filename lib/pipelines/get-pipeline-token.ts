import { pipelineName, type PipelineName } from './define-pipeline.js';

/**
 * The injection token of a pipeline. It is a string, so that two copies of this package agree on it.
 *
 * @param pipeline - name or handle; the pipeline of the short form (`default`) when omitted
 */
export function getPipelineToken(pipeline?: PipelineName): string {
  return `ReplicantPipeline(${pipelineName(pipeline)})`;
}
