import { Module, type OnModuleDestroy } from '@nestjs/common';
import { Pool } from 'pg';
import { readSettings } from './settings.js';

/** A module of its own, so that Nest closes the pool after the sink has drained. */
@Module({
  providers: [
    {
      provide: Pool,
      useFactory: () =>
        // Without these listeners a lost connection ends the process.
        new Pool({ connectionString: readSettings(process.env).targetUrl })
          .on('error', () => {})
          .on('connect', (client) => client.on('error', () => {})),
    },
  ],
  exports: [Pool],
})
export class TargetModule implements OnModuleDestroy {
  constructor(private readonly pool: Pool) {}

  async onModuleDestroy(): Promise<void> {
    await this.pool.end();
  }
}
