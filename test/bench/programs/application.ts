import 'reflect-metadata';
import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  getPipelineToken,
  type Pipeline,
  type PipelineOptions,
  ReplicantModule,
} from '../../../lib/index.js';
import type { ReadingSink } from './reading-sink.js';
import { endWithBench, setting, sourceConnection, tell } from './settings.js';

/** A program that reads with a sink and tells what that has cost. */
export interface ReadingProgram<S extends ReadingSink> {
  readonly sink: Type<S>;
  /** What is captured, and what differs from default options. */
  readonly options: Partial<PipelineOptions>;
  /** Runs before the pipeline is started. */
  readonly starting?: () => void;
  /** Runs when the server begins to stream. */
  readonly streaming?: () => void;
  /** Runs when the sink is complete: what the program tells. */
  result(sink: S): object;
}

@Module({})
class BenchApplication {
  static with(
    sink: Type<ReadingSink>,
    options: Partial<PipelineOptions>,
  ): DynamicModule {
    return {
      module: BenchApplication,
      imports: [
        ReplicantModule.forRootAsync({
          useFactory: () => ({
            connection: sourceConnection(),
            slotName: setting('SLOT'),
            autoStart: false,
            ...options,
          }),
        }),
      ],
      providers: [sink],
    };
  }
}

/** Runs the program in a Nest application, from its start to the end of this process. */
export async function readToTheEnd<S extends ReadingSink>(
  program: ReadingProgram<S>,
): Promise<never> {
  endWithBench();
  const application = await NestFactory.createApplicationContext(
    BenchApplication.with(program.sink, program.options),
    { logger: ['warn', 'error', 'fatal'] },
  );
  application.enableShutdownHooks();
  const pipeline = application.get<Pipeline>(getPipelineToken());
  pipeline.on('state', ({ to }) => {
    if (to === 'streaming') program.streaming?.();
    // A second connection would bring a part twice: nothing to measure.
    if (to === 'reconnecting' || to === 'halted') process.exit(1);
  });
  const sink = application.get(program.sink);
  program.starting?.();
  pipeline.start();
  await sink.complete;
  const result = program.result(sink);
  await application.close();
  await tell(result);
  process.exit(0);
}
