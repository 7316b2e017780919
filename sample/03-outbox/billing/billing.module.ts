import { Module } from '@nestjs/common';
import { Database } from '../database.js';
import { setting } from '../settings.js';
import { BillingController } from './billing.controller.js';
import { Ledger } from './ledger.js';

@Module({
  controllers: [BillingController],
  providers: [
    Ledger,
    {
      provide: Database,
      useFactory: () => new Database(setting('DATABASE_URL')),
    },
  ],
})
export class BillingModule {}
