import { Inject } from '@nestjs/common';
import type { PipelineName } from './define-pipeline.js';
import { getPipelineToken } from './get-pipeline-token.js';

/**
 * Injects a {@link Pipeline} into a constructor parameter or property.
 *
 * @param pipeline - name or handle; the pipeline of the short form (`default`) when omitted
 * @example
 * ```ts
 * constructor(@InjectPipeline('orders') private readonly pipeline: Pipeline) {}
 * ```
 */
export function InjectPipeline(
  pipeline?: PipelineName,
): ReturnType<typeof Inject> {
  return Inject(getPipelineToken(pipeline));
}
