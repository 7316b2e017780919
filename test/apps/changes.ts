import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  type ChangeContext,
  formatLsn,
  getPipelineToken,
  type Insert,
  OnChange,
  type Pipeline,
  ReplicantModule,
  ReplicantSink,
} from '../../lib/index.js';
import { livesForSpec, say, setting } from './settings.js';
import { Target, TargetModule } from './target.module.js';

/** Tells what it is told, each change in a database transaction of its own. */
@ReplicantSink()
class Telling {
  constructor(private readonly target: Target) {}

  @OnChange('public.t', { on: ['insert'] })
  async tell(
    { record, ordinal }: Insert<'public.t', { readonly id: number }>,
    { transaction }: ChangeContext,
  ): Promise<void> {
    await this.target.pool.query('insert into told values ($1, $2, $3)', [
      formatLsn(transaction.commitLsn),
      ordinal,
      record.id,
    ]);
    say(`told ${record.id}`);
    if (process.env['HOLD'] === String(record.id)) await new Promise(() => {});
  }
}

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      useFactory: () => ({
        connection: setting('SOURCE_URL'),
        slotName: setting('SLOT'),
        publication: 'p',
        goForwardOnly: true,
        checkpointStore: { connection: setting('TARGET_URL') },
      }),
    }),
    TargetModule,
  ],
  providers: [Telling],
})
class ChangesApplication {}

const application = await NestFactory.createApplicationContext(
  ChangesApplication,
  { logger: ['warn', 'error', 'fatal'] },
);
livesForSpec(application);
const pipeline = application.get<Pipeline>(getPipelineToken());
pipeline.on('halt', () => say('halted'));
await pipeline.whenStreaming();
say('streaming');
