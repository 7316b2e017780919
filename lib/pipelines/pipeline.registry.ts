import type { Pipeline } from '../engine/pipeline.js';
import { pipelineName, type PipelineName } from './define-pipeline.js';

/**
 * All pipelines of an application. Inject it where a pipeline is chosen at run time; where its name is known,
 * {@link InjectPipeline} is shorter.
 */
export class ReplicantRegistry {
  readonly #pipelines: ReadonlyMap<string, Pipeline>;

  constructor(pipelines: readonly Pipeline[]) {
    this.#pipelines = new Map(
      pipelines.map((pipeline) => [pipeline.name, pipeline]),
    );
  }

  /**
   * The pipeline of this name.
   *
   * @param pipeline - name or handle; the pipeline of the short form (`default`) when omitted
   * @throws RangeError when the application has none of this name
   */
  get(pipeline?: PipelineName): Pipeline {
    const name = pipelineName(pipeline);
    const found = this.#pipelines.get(name);
    if (found === undefined) {
      throw new RangeError(
        `There is no pipeline "${name}"; known: ${[...this.#pipelines.keys()].join(', ') || 'none'}.`,
      );
    }
    return found;
  }

  /** Whether the application has a pipeline of this name. */
  has(pipeline: PipelineName): boolean {
    return this.#pipelines.has(pipelineName(pipeline));
  }

  /** Every pipeline, in the order in which they were registered. */
  all(): readonly Pipeline[] {
    return [...this.#pipelines.values()];
  }
}
