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
import { openNow, record, recordUnhandled, stillOpen } from './findings.js';
import { LedgerSink } from './ledger.sink.js';

recordUnhandled();
const before = openNow();

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      useFactory: () => ({
        connection: setting('SOURCE_URL'),
        slotName: setting('SLOT'),
        publication: 'p',
        goForwardOnly: true,
      }),
    }),
    TargetModule,
  ],
  providers: [LedgerSink],
})
class MirrorApplication {}

const application = await NestFactory.createApplicationContext(
  MirrorApplication,
  { logger: ['warn', 'error', 'fatal'] },
);
application.enableShutdownHooks();
const pipeline = application.get<Pipeline>(getPipelineToken());
const sink = application.get(LedgerSink);
let closing = false;

process.on('message', (word) => {
  if (word === 'hold work') sink.holdAt('work');
  if (word === 'hold large') sink.holdAt('large');
  if (word === 'status') say(`status ${JSON.stringify(pipeline.status())}`);
  if (word === 'close') void close();
});
// The program that injects the faults has died: so do we. None of these listeners keeps this process alive.
process.once('disconnect', () => process.exit(1));
process.channel?.unref();

pipeline.on('halt', () => say('halted'));
pipeline.on('reconnect', () => say('reconnects'));
pipeline.on('state', ({ to }) => say(to));
say('booted');
if (pipeline.state === 'streaming') say('streaming');

/** May be asked for twice at once. */
async function close(): Promise<void> {
  const first = !closing;
  closing = true;
  await application.close();
  if (!first) return;
  for (const name of await stillOpen(before)) record('open', name);
  say('closed');
}
