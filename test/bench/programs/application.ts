import 'reflect-metadata';
import {
  type DynamicModule,
  type INestApplicationContext,
  Module,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  getPipelineToken,
  type Pipeline,
  type PipelineOptions,
  ReplicantModule,
} from '../../../lib/index.js';
import { endWithBench, setting, sourceConnection } from './settings.js';

@Module({})
class BenchApplication {
  static with(sink: Type, options: Partial<PipelineOptions>): DynamicModule {
    return {
      module: BenchApplication,
      imports: [
        ReplicantModule.forRootAsync({
          useFactory: () => ({
            connection: sourceConnection(),
            slotName: setting('SLOT'),
            publication: 'p',
            goForwardOnly: true,
            readPacing: process.env['READ_PACING'] !== 'off',
            ...options,
          }),
        }),
      ],
      providers: [sink],
    };
  }
}

/** A Nest application that streams to a sink. */
export interface RunningApplication<S> {
  readonly application: INestApplicationContext;
  readonly sink: S;
}

/**
 * Boots a Nest application with a sink, with default options but for pacing and those given.
 *
 * @param streaming runs when the server begins to stream
 */
export async function startApplication<S>(
  sink: Type<S>,
  streaming: () => void,
  options: Partial<PipelineOptions> = {},
): Promise<RunningApplication<S>> {
  endWithBench();
  const application = await NestFactory.createApplicationContext(
    BenchApplication.with(sink, options),
    { logger: ['warn', 'error', 'fatal'] },
  );
  application.enableShutdownHooks();
  const pipeline = application.get<Pipeline>(getPipelineToken());
  pipeline.on('state', ({ to }) => {
    if (to === 'streaming') streaming();
    // A second connection would deliver a part twice: nothing to measure.
    if (to === 'reconnecting' || to === 'halted') process.exit(1);
  });
  if (pipeline.state === 'streaming') streaming();
  return { application, sink: application.get(sink) };
}
