import { Injectable } from '@nestjs/common';
import {
  HealthIndicatorService,
  type HealthIndicatorResult,
} from '@nestjs/terminus';
import { errorClass } from '../engine/model/error-class.js';
import type { Pipeline } from '../engine/pipeline.js';
import type { PipelineStatus } from '../engine/telemetry/pipeline-status.js';
import { ReplicantRegistry } from '../pipelines/pipeline.registry.js';
import { probe, worst, type Health, type Probe } from './probe.js';

/** What a health answer says about one pipeline: its status, and the health derived from it. */
export type PipelineHealth = PipelineStatus & { readonly health: Health };

/**
 * Answers probes from the live state of all pipelines: it opens no connection and never throws. List it among the
 * providers of the module that imports `TerminusModule`.
 *
 * The answer is the worst of all pipelines, which stand under `pipelines` by name; one that halted carries the code and
 * the remedy. Positions are text such as `16/B374D848`.
 *
 * | state | startup | liveness | readiness |
 * | --- | --- | --- | --- |
 * | connecting | down | up | down |
 * | streaming | up | up | up |
 * | reconnecting | up | up | degraded, after 60 seconds down |
 * | draining, stopped | up | up | down |
 * | halted | up | up | down |
 *
 * A pipeline with `autoStart: false` is up while it is idle or stopped.
 *
 * @example
 * ```ts
 * @Get('health/ready') @HealthCheck()
 * ready() { return this.health.check([() => this.replicant.readiness()]); }
 * ```
 */
@Injectable()
export class ReplicantHealthIndicator {
  constructor(
    private readonly registry: ReplicantRegistry,
    private readonly indicators: HealthIndicatorService,
  ) {}

  /**
   * Whether a restart would help: down when it would.
   *
   * @param key - name of the answer among those of other indicators
   */
  liveness(key = 'replicant'): HealthIndicatorResult {
    return this.#answer('liveness', key);
  }

  /**
   * Whether the pipelines are at work.
   *
   * @param key - name of the answer among those of other indicators
   */
  readiness(key = 'replicant'): HealthIndicatorResult {
    return this.#answer('readiness', key);
  }

  /**
   * Whether the pipelines have started.
   *
   * @param key - name of the answer among those of other indicators
   */
  startup(key = 'replicant'): HealthIndicatorResult {
    return this.#answer('startup', key);
  }

  // Terminus answers 500 instead of 503 when an indicator throws.
  #answer(question: Probe, key: string): HealthIndicatorResult {
    const indicator = this.indicators.check(key);
    try {
      const pipelines = this.registry
        .all()
        .map((pipeline) => describe(question, pipeline));
      const data = {
        pipelines: Object.fromEntries(
          pipelines.map((each) => [each.pipeline, each]),
        ),
      };
      switch (worst(pipelines.map(({ health }) => health))) {
        case 'up':
          return indicator.up(data);
        case 'degraded':
          return indicator.degraded(data);
        case 'down':
          return indicator.down(data);
      }
    } catch (error) {
      return indicator.down({
        message: errorClass(error),
      });
    }
  }
}

function describe(question: Probe, pipeline: Pipeline): PipelineHealth {
  const status = pipeline.status();
  const { autoStart } = pipeline.options;
  const age = Date.now() - Date.parse(status.since);
  return {
    ...status,
    health: probe(question, { state: status.state, autoStart, age }),
  };
}
