import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { ApplicationModule } from './application.module.js';
import { readSettings } from './settings.js';

const application = await NestFactory.create(ApplicationModule);
// On SIGTERM the running transaction ends and is confirmed before the pod goes.
application.enableShutdownHooks();
await application.listen(readSettings(process.env).port);
