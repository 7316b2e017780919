import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { RelayModule } from './relay.module.js';

const relay = await NestFactory.createApplicationContext(RelayModule, {
  logger: ['warn', 'error', 'fatal'],
});
relay.enableShutdownHooks();
process.send?.('ready');

// What started this process has ended: drain as after any SIGTERM.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
