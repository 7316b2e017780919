import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { ReplicantModule } from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { HealthController } from './health.controller.js';
import { readSettings } from './settings.js';
import { ShopCopy } from './shop-copy.sink.js';
import { StatusController } from './status.controller.js';
import { TargetModule } from './target.module.js';

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      useFactory: () => {
        const { sourceUrl, slotName, snapshot } = readSettings(process.env);
        return {
          connection: sourceUrl,
          slotName,
          publication: 'shop',
          // What is in the tables at the first start is copied first, or beside the stream.
          snapshot: { mode: snapshot },
          types: 'text',
        };
      },
    }),
    TargetModule,
    // A probe that fails is answered, and not logged each time.
    TerminusModule.forRoot({ logger: false }),
  ],
  controllers: [HealthController, StatusController],
  providers: [ShopCopy, ReplicantHealthIndicator],
})
export class ApplicationModule {}
