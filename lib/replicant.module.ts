import { Module, type DynamicModule } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { pipelineName, DEFAULT_PIPELINE } from './pipelines/define-pipeline.js';
import { PipelineOrchestrator } from './pipelines/pipeline.orchestrator.js';
import {
  ConfigurableModuleClass,
  pipelineNames,
  withPipelines,
  type ReplicantModuleAsyncOptions,
  type ReplicantModuleExtras,
  type ReplicantModuleOptions,
} from './replicant.module-definition.js';
import { SinkExplorer } from './sinks/sink.explorer.js';

/**
 * Streams committed PostgreSQL transactions into the sinks of an application. Import it once.
 *
 * Pipelines start when the application has started, and drain when it shuts down, before the providers that their sinks
 * inject are destroyed. Call `app.enableShutdownHooks()`, or a SIGTERM ends the process without that.
 */
@Module({})
export class ReplicantModule extends ConfigurableModuleClass {
  /**
   * Configures one pipeline, named `default`, or several by name.
   *
   * @throws {ReplicantConfigError} here or while the application starts, for the first option that cannot work
   */
  static override forRoot(
    options: ReplicantModuleOptions & ReplicantModuleExtras,
  ): DynamicModule {
    const names = pipelineNames(options);
    return assemble(super.forRoot(options), names);
  }

  /**
   * Configures pipelines by a factory function (`useFactory`), a class (`useClass`) or a provider (`useExisting`).
   *
   * @throws {ReplicantConfigError} here or while the application starts, for the first option that cannot work
   */
  static override forRootAsync({
    pipelines = [DEFAULT_PIPELINE],
    ...options
  }: ReplicantModuleAsyncOptions): DynamicModule {
    return assemble(super.forRootAsync(options), pipelines.map(pipelineName));
  }
}

function assemble(
  definition: DynamicModule,
  names: readonly string[],
): DynamicModule {
  const withNames = withPipelines(definition, names);
  return {
    ...withNames,
    imports: [...(withNames.imports ?? []), DiscoveryModule],
    providers: [
      ...(withNames.providers ?? []),
      SinkExplorer,
      PipelineOrchestrator,
    ],
  };
}
