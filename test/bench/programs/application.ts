import 'reflect-metadata';
import {
  type INestApplicationContext,
  Module,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  getPipelineToken,
  type Pipeline,
  ReplicantModule,
} from '../../../lib/index.js';
import { endWithBench, setting, sourceConnection } from './settings.js';

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      useFactory: () => ({
        connection: sourceConnection(),
        slotName: setting('SLOT'),
        publication: 'p',
        goForwardOnly: true,
        readPacing: process.env['READ_PACING'] !== 'off',
      }),
    }),
  ],
})
class BenchApplication {}

/** A Nest application that streams to a sink. */
export interface RunningApplication<S> {
  readonly application: INestApplicationContext;
  readonly sink: S;
}

/**
 * Boots a Nest application with a sink, with default options but for pacing.
 *
 * @param streaming runs when the server begins to stream
 */
export async function startApplication<S>(
  sink: Type<S>,
  streaming: () => void,
): Promise<RunningApplication<S>> {
  endWithBench();
  const application = await NestFactory.createApplicationContext(
    { module: BenchApplication, providers: [sink] },
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
