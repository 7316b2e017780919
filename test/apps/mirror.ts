import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  getPipelineToken,
  type Pipeline,
  ReplicantModule,
} from '../../lib/index.js';
import { MirrorSink } from './mirror.sink.js';
import { livesForSpec, say, setting } from './settings.js';
import { Target, TargetModule } from './target.module.js';

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      useFactory: () => ({
        connection: setting('SOURCE_URL'),
        slotName: setting('SLOT'),
        publication: 'p',
        goForwardOnly: true,
        types: 'text',
        leaderElection: process.env['LEADER_ELECTION'] === 'on',
        onHalt: process.env['ON_HALT'] === 'exit' ? 'exit' : 'stay',
        drainTimeout: Number(process.env['DRAIN_TIMEOUT'] ?? 10_000),
        maxInflightBytes: Number(process.env['MAX_INFLIGHT_BYTES'] ?? 16 << 20),
        ...(process.env['SPILL_DIR'] !== undefined && {
          streaming: {
            spill: { dir: process.env['SPILL_DIR'], maxSpillBytes: 1 << 30 },
          },
        }),
      }),
    }),
    TargetModule,
  ],
  providers: [MirrorSink],
})
class MirrorApplication {}

const application = await NestFactory.createApplicationContext(
  MirrorApplication,
  { logger: ['warn', 'error', 'fatal'] },
);
if (process.env['SHUTDOWN_HOOKS'] !== 'off') application.enableShutdownHooks();
if (process.env['IGNORE_SIGTERM'] === 'on') process.on('SIGTERM', () => {});

livesForSpec(application);

// What is said in the end may not arrive any more; what is written does.
if (process.env['ON_HALT'] !== undefined) {
  const { pool } = application.get(Target);
  process.once('exit', () => {
    console.log(`target ${pool.ended ? 'closed' : 'open'}`);
  });
}

const pipeline = application.get<Pipeline>(getPipelineToken());
pipeline.on('halt', () => say('halted'));
pipeline.on('spilled', () => say('spilled'));
pipeline.on('state', ({ to }) => {
  if (to === 'standby' || to === 'reconnecting') say(to);
});
if (pipeline.state === 'standby') say('standby');
await pipeline.whenStreaming();
say('streaming');
