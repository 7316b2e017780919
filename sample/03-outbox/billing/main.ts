import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { setting } from '../settings.js';
import { BillingModule } from './billing.module.js';

const billing = await NestFactory.createMicroservice<MicroserviceOptions>(
  BillingModule,
  {
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port: Number(setting('BILLING_PORT')) },
    logger: ['warn', 'error', 'fatal'],
  },
);
billing.enableShutdownHooks();
await billing.listen();
process.send?.('ready');

// What started this process has ended.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
