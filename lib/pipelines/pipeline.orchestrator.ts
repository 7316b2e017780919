import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import type { Pipeline } from '../engine/pipeline.js';
import { SinkExplorer } from '../sinks/sink.explorer.js';
import { OnHalt } from './on-halt.js';
import { logPipeline } from './pipeline.log.js';
import { ReplicantRegistry } from './pipeline.registry.js';
import { ShutdownHint } from './shutdown-hint.js';

/** Ties the life of the pipelines to the life of the application. */
@Injectable()
export class PipelineOrchestrator
  implements
    OnApplicationBootstrap,
    BeforeApplicationShutdown,
    OnApplicationShutdown
{
  readonly #logger = new Logger('Replicant');
  readonly #hint = new ShutdownHint(this.#logger);
  readonly #onHalt = new OnHalt();

  constructor(
    private readonly registry: ReplicantRegistry,
    private readonly explorer: SinkExplorer,
  ) {}

  /** Hands each pipeline its sink and starts it; waits until it streams or stands by only when its option `startup` says so. */
  async onApplicationBootstrap(): Promise<void> {
    for (const { pipeline, instance, sink } of this.explorer.explore()) {
      pipeline.attach(sink);
      stopBeforeDestroyed(instance, pipeline);
      logPipeline(pipeline, this.#logger);
    }
    const pipelines = this.registry.all();
    this.#hint.watch(pipelines);
    this.#onHalt.watch(pipelines);
    const starting = pipelines.filter(({ options }) => options.autoStart);
    for (const pipeline of starting) pipeline.start();
    const awaited = starting.filter(
      ({ options }) => options.startup === 'wait',
    );
    try {
      await Promise.all(awaited.map((pipeline) => whenAtWork(pipeline)));
    } catch (error) {
      // Nest 11 calls no shutdown hook after a failed start.
      await this.#stopAll();
      throw error;
    }
  }

  /** Stops what the hooks of the sinks did not, while connections that Nest closes later are still open. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#stopAll();
  }

  /** Stops what somebody started since: requests were served until now. */
  async onApplicationShutdown(): Promise<void> {
    await this.#stopAll();
  }

  async #stopAll(): Promise<void> {
    this.#hint.cancel();
    await Promise.all(this.registry.all().map((pipeline) => pipeline.stop()));
    this.#onHalt.release();
  }
}

/** A replica that stands by has started: it would wait for the other one for ever. */
async function whenAtWork(pipeline: Pipeline): Promise<void> {
  const standby = new Promise<void>((resolve) => {
    pipeline.on('state', ({ to }) => {
      if (to === 'standby') resolve();
    });
  });
  await Promise.race([pipeline.whenStreaming(), standby]);
}

/**
 * Lets the pipeline drain before the sink is destroyed. The module's own hook would be too late: Nest destroys a global
 * module after all others, the one with the sink's database included.
 */
function stopBeforeDestroyed(sink: object, pipeline: Pipeline): void {
  const own: unknown = Reflect.get(sink, 'onModuleDestroy');
  Object.defineProperty(sink, 'onModuleDestroy', {
    configurable: true,
    writable: true,
    value: async (): Promise<void> => {
      await pipeline.stop();
      if (typeof own === 'function') await Reflect.apply(own, sink, []);
    },
  });
}
