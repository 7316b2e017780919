import { Module } from '@nestjs/common';
import { readSettings } from './settings.js';
import { TargetDatabase } from './target-database.js';

/** A module of its own, so that Nest closes the database after the sink has drained. */
@Module({
  providers: [
    {
      provide: TargetDatabase,
      useFactory: () => new TargetDatabase(readSettings(process.env).targetUrl),
    },
  ],
  exports: [TargetDatabase],
})
export class TargetModule {}
