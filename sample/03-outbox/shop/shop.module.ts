import { type DynamicModule, Module } from '@nestjs/common';
import { Database } from '../database.js';
import { OrderService } from './order.service.js';

@Module({})
export class ShopModule {
  static of(databaseUrl: string): DynamicModule {
    return {
      module: ShopModule,
      providers: [
        OrderService,
        { provide: Database, useFactory: () => new Database(databaseUrl) },
      ],
    };
  }
}
