import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { ReplicantModule } from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { HealthController } from './health.controller.js';
import { readSettings } from './settings.js';
import { ShopCopy } from './shop-copy.sink.js';
import { TargetModule } from './target.module.js';

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      useFactory: () => ({
        connection: readSettings(process.env).sourceUrl,
        slotName: 'shop_copy',
        publication: 'shop',
        // The tables are empty at the first start, so there is nothing to copy first.
        goForwardOnly: true,
        types: 'text',
      }),
    }),
    TargetModule,
    // A probe that fails is answered, and not logged each time.
    TerminusModule.forRoot({ logger: false }),
  ],
  controllers: [HealthController],
  providers: [ShopCopy, ReplicantHealthIndicator],
})
export class ApplicationModule {}
