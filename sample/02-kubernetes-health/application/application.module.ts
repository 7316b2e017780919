import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { ReplicantModule } from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { HealthController } from './health.controller.js';
import { RepairController } from './repair.controller.js';
import { DRAIN_TIMEOUT_MS, readSettings } from './settings.js';
import { StockCopy } from './stock.sink.js';
import { TargetModule } from './target.module.js';

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      useFactory: () => ({
        connection: readSettings(process.env).sourceUrl,
        slotName: 'stock_copy',
        publication: 'stock_pub',
        // A table that takes long is copied with { mode: 'incremental' }, which goes on where it was after a kill.
        snapshot: true,
        drainTimeout: DRAIN_TIMEOUT_MS,
        health: {
          // A worker that serves nobody may fail readiness; a process that serves requests too sets 'lenient'.
          readiness: 'strict',
          reconnectGrace: 30_000,
          maxLagBytes: 256 * 1024 * 1024,
          maxLagMilliseconds: 120_000,
          // As often as the readiness probe asks.
          cacheFor: 5_000,
        },
      }),
    }),
    TargetModule,
    // A probe that fails is answered, and not logged each time.
    TerminusModule.forRoot({ logger: false }),
  ],
  controllers: [HealthController, RepairController],
  providers: [StockCopy, ReplicantHealthIndicator],
})
export class ApplicationModule {}
