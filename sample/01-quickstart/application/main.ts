import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { ApplicationModule } from './application.module.js';
import { readSettings } from './settings.js';

const application = await NestFactory.create(ApplicationModule, {
  logger: ['warn', 'error', 'fatal'],
});
application.enableShutdownHooks();
await application.listen(readSettings(process.env).port, '127.0.0.1');

// The quickstart that started this process has ended: drain as after any SIGTERM.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
