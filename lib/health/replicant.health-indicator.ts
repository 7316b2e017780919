import { Injectable } from '@nestjs/common';
import {
  HealthIndicatorService,
  type HealthIndicatorResult,
} from '@nestjs/terminus';
import { errorClass } from '../engine/model/error-class.js';
import type { Pipeline } from '../engine/pipeline.js';
import type { PipelineStatus } from '../engine/telemetry/pipeline-status.js';
import { ReplicantRegistry } from '../pipelines/pipeline.registry.js';
import {
  conditionsOf,
  probe,
  worst,
  type Condition,
  type Health,
  type Probe,
} from './probe.js';
import { Thresholds } from './thresholds.js';

/** What a health answer says about one pipeline: its status, and the health derived from it. */
export type PipelineHealth = PipelineStatus & {
  /** The answer to this probe. */
  readonly health: Health;
  /** What is the case, that of the state first; see docs/health.md. */
  readonly conditions: readonly Condition[];
};

/**
 * Answers probes from what the process knows of all pipelines: it waits for nothing and never throws. What the source says of
 * the slots is asked on the side, at most every `health.cacheFor`, and appears in a later answer. List it among the providers of the
 * module that imports `TerminusModule`.
 *
 * The answer is the worst of all pipelines, which stand under `pipelines` by name; one that halted carries the code and
 * the remedy. Positions are text such as `16/B374D848`.
 *
 * | state | startup | liveness | readiness |
 * | --- | --- | --- | --- |
 * | idle, connecting | down | up | down |
 * | snapshotting | up | up | degraded |
 * | streaming, standby | up | up | up; degraded above a limit of the option `health`, and while rows are copied beside the stream |
 * | reconnecting | up | up | degraded, after `health.reconnectGrace` down |
 * | draining, stopped | up | up | down |
 * | halted | up | up | down, or degraded with `health.readiness: 'lenient'` |
 * | a handler that hangs | up | down | down |
 *
 * A standby is up whatever the limits say, and so is a pipeline with `autoStart: false` while it is idle or stopped. docs/health.md
 * has all conditions.
 *
 * @example
 * ```ts
 * @Get('health/ready') @HealthCheck()
 * ready() { return this.health.check([() => this.replicant.readiness()]); }
 * ```
 */
@Injectable()
export class ReplicantHealthIndicator {
  readonly #thresholds = new WeakMap<Pipeline, Thresholds>();

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
        .map((pipeline) => this.#describe(question, pipeline));
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

  #describe(question: Probe, pipeline: Pipeline): PipelineHealth {
    void pipeline.checkSlot();
    const status = pipeline.status();
    const { autoStart, health: options } = pipeline.options;
    const conditions = conditionsOf({
      status,
      autoStart,
      age: Date.now() - Date.parse(status.since),
      exceeded: this.#thresholdsOf(pipeline).judge(status),
      options,
    });
    return {
      ...status,
      health: probe(question, conditions, options),
      conditions,
    };
  }

  #thresholdsOf(pipeline: Pipeline): Thresholds {
    const known = this.#thresholds.get(pipeline);
    if (known !== undefined) return known;
    const thresholds = new Thresholds(pipeline.options.health);
    this.#thresholds.set(pipeline, thresholds);
    return thresholds;
  }
}
