import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  getPipelineToken,
  type Pipeline,
  ReplicantModule,
} from '../../../lib/index.js';
import { say, setting } from '../../apps/settings.js';
import { TargetModule } from '../../apps/target.module.js';
import { capturedBy } from '../../support/captured.js';
import { waitFor } from '../../support/wait-for.js';
import { LOADED_TABLES } from '../load.js';
import { isModeName, type Mode, MODES, type Point } from '../modes.js';
import { standInWrites } from './half-writes.js';
import { MODE_PROGRAMS } from './mode-programs.js';
import { Points, PointsModule } from './points.js';
import { Work } from './work.js';

const mode = setting('MODE');
if (!isModeName(mode)) throw new Error('MODE is none of the modes.');
const { sink, options } = MODE_PROGRAMS[mode];
const { snapshot, streaming, decoder }: Mode = MODES[mode];

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      imports: [PointsModule],
      inject: [Points],
      useFactory: (points: Points) => ({
        connection: setting('SOURCE_URL'),
        slotName: setting('SLOT'),
        ...capturedBy(decoder, LOADED_TABLES),
        goForwardOnly: snapshot === null,
        types: 'text',
        ...options(points),
      }),
    }),
    TargetModule,
    PointsModule,
  ],
  providers: [sink, Work],
})
class CrashApplication {}

const HELD: Point = 'while it is held';
const HELD_MS = 30_000;

const application = await NestFactory.createApplicationContext(
  CrashApplication,
  { logger: ['warn', 'error', 'fatal'] },
);
application.enableShutdownHooks();
const pipeline = application.get<Pipeline>(getPipelineToken());
const points = application.get(Points);
if (streaming === 'on disk') await standInWrites(points);

process.on('message', (sentence) => {
  const [word, first, second] = String(sentence).split(' / ');
  if (word === 'stand' && first !== undefined)
    points.want(first, Number(second));
  if (word === 'stand' && first === HELD) void sayWhenHeld();
  if (word === 'wait') void sayWhenWaiting();
  // Its end, whatever that is, is told by what is stored.
  if (word === 'copy')
    pipeline
      .snapshot(LOADED_TABLES.map((one) => one.join('.')))
      .catch(() => {});
  if (word === 'close') void application.close();
});
// The program that kills us has died: so do we. None of these listeners keeps this process alive.
process.once('disconnect', () => process.exit(1));
process.channel?.unref();

pipeline.on('halt', ({ halt: { code } }) => {
  if (snapshot === 'initial' && code === 'snapshot_incomplete') void mend();
  else say('halted');
});
pipeline.on('batch', () => {
  points.unstored = 0;
});
pipeline.on('state', ({ to }) => {
  // Which halts are none for the parent is decided above.
  if (to !== 'halted') say(to);
  if (to === 'streaming' && pipeline.status().streamed === null) say('plain');
});
say('booted');
if (pipeline.state === 'streaming') say('streaming');

/** Says when a transaction has arrived that nobody works on. */
async function sayWhenWaiting(): Promise<void> {
  await waitFor(
    () => {
      const { inflightBytes, handler } = pipeline.status();
      return inflightBytes > 0 && handler === null;
    },
    { message: 'a transaction to wait' },
  );
  say('waiting');
}

/** Says when a part of a transaction has arrived that still runs. */
async function sayWhenHeld(): Promise<void> {
  await waitFor(
    () => {
      const { bytes = 0, bytesOnDisk = 0 } = pipeline.status().streamed ?? {};
      return (streaming === 'on disk' ? bytesOnDisk : bytes) > 0;
    },
    { message: 'a part of a transaction', timeout: HELD_MS },
  );
  say(`stands ${HELD}`);
}

/** Does what the remedy says of a copy that was killed. */
async function mend(): Promise<void> {
  say('incomplete');
  await pipeline.stop();
  await pipeline.dropSlot();
  pipeline.start();
}
