import type { Provider } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  getPipelineToken,
  Pipeline,
  type PipelineOptions,
  ReplicantModule,
} from 'nestjs-replicant';
import { onTestFinished } from 'vitest';
import type { TestDatabase } from './test-database.js';

/**
 * A Nest application whose checkpoint the library keeps, over the publication `p` with the slot `slot_<database>`. It streams when this
 * resolves, and is closed when the test has finished.
 */
export async function bootWithStore(
  source: TestDatabase,
  providers: Provider[],
  options: Partial<PipelineOptions> = {},
): Promise<Pipeline> {
  const module = await Test.createTestingModule({
    imports: [
      ReplicantModule.forRoot({
        connection: source.url,
        slotName: `slot_${source.name}`,
        publication: 'p',
        goForwardOnly: true,
        checkpointStore: { connection: source.url },
        startup: 'wait',
        ...options,
      }),
    ],
    providers,
  }).compile();
  module.useLogger(false);
  onTestFinished(() => module.close());
  await module.init();
  return module.get<Pipeline>(getPipelineToken());
}
