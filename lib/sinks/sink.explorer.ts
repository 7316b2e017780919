import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { AttachedSink } from '../engine/deliver/sink.js';
import type { Pipeline } from '../engine/pipeline.js';
import { ReplicantRegistry } from '../pipelines/pipeline.registry.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import { createSink } from './sink.factory.js';
import { sinkPipeline } from './sink.metadata.js';

type ProviderWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** A decorated class as it was found among the providers. */
interface Candidate {
  readonly sinkClass: { readonly name: string };
  readonly instance: object;
  /** Name of the Nest module that provides it. */
  readonly home: string;
}

/** A sink that was found and checked, and the pipeline that it belongs to. */
export interface DiscoveredSink {
  readonly pipeline: Pipeline;
  /** The provider itself. */
  readonly instance: object;
  readonly sink: AttachedSink;
}

/** Finds the sink of each pipeline among all providers of the application. */
@Injectable()
export class SinkExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly registry: ReplicantRegistry,
  ) {}

  /**
   * One sink for each pipeline, in the order of the pipelines.
   *
   * @throws {SinkDefinitionError} when a pipeline has no sink or several, or a sink cannot work as it is provided
   */
  explore(): readonly DiscoveredSink[] {
    const found = new Map<string, Candidate>();
    for (const candidate of this.candidates()) {
      const name = sinkPipeline(candidate.sinkClass);
      if (name === undefined) continue;
      if (!this.registry.has(name))
        throw unknownPipeline(candidate, name, this.registry);
      const other = found.get(name);
      if (other !== undefined) throw twoSinks(other, candidate, name);
      found.set(name, candidate);
    }
    const sinks = this.registry.all().map((pipeline) => {
      const candidate = found.get(pipeline.name);
      if (candidate === undefined) throw noSink(pipeline.name);
      return { pipeline, candidate };
    });
    return sinks.map(({ pipeline, candidate: { sinkClass, instance } }) => ({
      pipeline,
      instance,
      sink: createSink(sinkClass, instance, pipeline),
    }));
  }

  /** Every distinct instance of a decorated class. An alias, or a factory that hands on a provider, is no second one. */
  private candidates(): readonly Candidate[] {
    const found = new Map<object, Candidate>();
    for (const wrapper of this.discovery.getProviders()) {
      if (wrapper.isAlias) continue;
      const instance: unknown = wrapper.instance;
      if (instance instanceof ReplicantRegistry && instance !== this.registry)
        throw importedTwice();
      const sinkClass = classOf(wrapper);
      if (sinkClass === null || sinkPipeline(sinkClass) === undefined) continue;
      const home = wrapper.host?.name ?? 'the application';
      if (wrapper.isTransient || !wrapper.isDependencyTreeStatic())
        throw notStatic(sinkClass.name, home);
      if (typeof instance !== 'object' || instance === null) continue;
      if (!found.has(instance))
        found.set(instance, { sinkClass, instance, home });
    }
    return [...found.values()];
  }
}

/** The class behind a provider: of a factory's or value's result, since such a provider declares none. */
function classOf(wrapper: ProviderWrapper): { readonly name: string } | null {
  if (wrapper.inject === undefined && typeof wrapper.metatype === 'function')
    return wrapper.metatype;
  const instance: unknown = wrapper.instance;
  if (typeof instance !== 'object' || instance === null) return null;
  return typeof instance.constructor === 'function'
    ? instance.constructor
    : null;
}

function noSink(pipeline: string): SinkDefinitionError {
  return new SinkDefinitionError(
    `Pipeline "${pipeline}" has no sink; list a class with ${decorator(pipeline)} among the providers of a module (request-scoped providers are not considered).`,
  );
}

function twoSinks(
  first: Candidate,
  second: Candidate,
  pipeline: string,
): SinkDefinitionError {
  if (first.sinkClass === second.sinkClass) {
    return new SinkDefinitionError(
      `${first.sinkClass.name} is provided twice (${first.home}, ${second.home}), so each transaction would be applied twice; provide it in one module, export it there, and import that module.`,
    );
  }
  return new SinkDefinitionError(
    `Pipeline "${pipeline}" has two sinks, ${first.sinkClass.name} (${first.home}) and ${second.sinkClass.name} (${second.home}); keep one, or give the other a pipeline of its own.`,
  );
}

function unknownPipeline(
  { sinkClass, home }: Candidate,
  pipeline: string,
  registry: ReplicantRegistry,
): SinkDefinitionError {
  const known = registry.all().map(({ name }) => name);
  return new SinkDefinitionError(
    `${sinkClass.name} (${home}) is the sink of the unknown pipeline "${pipeline}"; known: ${known.join(', ') || 'none'}. Correct the name in @ReplicantSink, or add the pipeline to ReplicantModule.`,
  );
}

function notStatic(sink: string, home: string): SinkDefinitionError {
  return new SinkDefinitionError(
    `${sink} (${home}) is transient or request-scoped, itself or through what it injects; a sink must be a singleton, so inject only singletons (the option "around" gives each delivery a context of its own).`,
  );
}

function importedTwice(): SinkDefinitionError {
  return new SinkDefinitionError(
    'ReplicantModule is configured twice in this application; call forRoot or forRootAsync once and list every pipeline there.',
  );
}

function decorator(pipeline: string): string {
  return pipeline === 'default'
    ? '@ReplicantSink()'
    : `@ReplicantSink('${pipeline}')`;
}
