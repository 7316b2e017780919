import { Injectable, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MemoryKeeper } from '../../test/support/keeper.js';
import { present } from '../../test/support/present.js';
import { StubPipeline, unreachable } from '../../test/support/stub-pipeline.js';
import { Checkpoint } from '../decorators/checkpoint.decorator.js';
import { OnBatch } from '../decorators/on-batch.decorator.js';
import { OnChange } from '../decorators/on-change.decorator.js';
import { OnSnapshot } from '../decorators/on-snapshot.decorator.js';
import { OnTransaction } from '../decorators/on-transaction.decorator.js';
import { ReplicantSink } from '../decorators/replicant-sink.decorator.js';
import { InsertChange } from '../engine/assemble/changes.js';
import type { AttachedSink } from '../engine/deliver/sink.js';
import type { Insert } from '../engine/model/change.js';
import type { SnapshotContext, SnapshotRow } from '../engine/model/snapshot.js';
import type { Transaction } from '../engine/model/transaction.js';
import type { PipelineOptions } from '../engine/options/pipeline-options.js';
import { definePipeline } from '../pipelines/define-pipeline.js';
import { getPipelineToken } from '../pipelines/get-pipeline-token.js';
import { ReplicantModule } from '../replicant.module.js';
import type { ChangeContext } from './change-handlers.js';

interface Shop {
  'public.orders': { id: number };
}

const shop = definePipeline<Shop>('default');
const { connection } = unreachable;

const orders = {
  oid: 1,
  schema: 'public',
  table: 'orders',
  name: 'public.orders',
  replicaIdentity: 'default',
  columns: [],
} as const;

const transaction: Transaction = {
  pipeline: 'default',
  slotName: 'orders',
  xid: 7,
  commitLsn: 16n,
  commitEndLsn: 32n,
  commitTime: new Date(0),
  commitTimeMicros: 0n,
  changes: [1, 2].map((id) => new InsertChange(id, 16n, orders, { id })),
  messages: [],
};

/** Starts an application with this sink, and gives what its pipeline was given. */
async function boot(
  options: Partial<PipelineOptions>,
  providers: ModuleMetadata['providers'],
): Promise<{ app: TestingModule; sink: AttachedSink }> {
  const stub = new StubPipeline('default', options);
  const app = await Test.createTestingModule({
    imports: [
      ReplicantModule.forRoot({ ...unreachable, ...options, autoStart: false }),
    ],
    providers: providers ?? [],
  })
    .overrideProvider(getPipelineToken())
    .useValue(stub)
    .compile();
  await app.init();
  onTestFinished(() => app.close());
  return { app, sink: present(stub.sink) };
}

@Injectable()
class Mailer {
  readonly sent: string[] = [];

  async send(text: string): Promise<void> {
    this.sent.push(text);
  }
}

@ReplicantSink()
class Mails {
  constructor(private readonly mailer: Mailer) {}

  @OnChange(shop, 'public.orders', { on: ['insert'] })
  async confirm(
    { record, ordinal }: Insert<'public.orders', Shop['public.orders']>,
    { transaction: { commitLsn } }: ChangeContext,
  ): Promise<void> {
    await this.mailer.send(`order ${record.id} (${commitLsn}/${ordinal})`);
  }
}

@ReplicantSink()
class Copies {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();

  constructor(private readonly mailer: Mailer) {}

  @OnBatch(shop)
  async copy(batch: readonly Transaction<Shop>[]): Promise<void> {
    await this.mailer.send(batch.map(({ xid }) => xid).join(' '));
  }
}

describe('an application', () => {
  it('gives changes to the methods of a sink without checkpoint', async () => {
    const { app, sink } = await boot({ checkpointStore: { connection } }, [
      Mailer,
      Mails,
    ]);
    expect(sink).not.toHaveProperty('checkpoint');
    await sink.transaction?.(transaction);
    expect(app.get(Mailer).sent).toEqual(['order 1 (16/1)', 'order 2 (16/2)']);
  });

  it('gives batches to the method of a sink', async () => {
    const { app, sink } = await boot({ batchDelivery: {} }, [Mailer, Copies]);
    expect(sink.checkpoint?.kind).toBe('keeper');
    expect(sink).not.toHaveProperty('transaction');
    await sink.batch?.([transaction, { ...transaction, xid: 8 }]);
    expect(app.get(Mailer).sent).toEqual(['7 8']);
  });

  it('gives rows of a snapshot to the method of a sink', async () => {
    @ReplicantSink()
    class Catalog {
      constructor(private readonly mailer: Mailer) {}

      @OnTransaction()
      async apply(): Promise<void> {}

      @OnSnapshot(shop)
      async copy(
        rows: readonly SnapshotRow<Shop>[],
        { relation }: SnapshotContext,
      ): Promise<void> {
        for (const { record } of rows)
          await this.mailer.send(`${relation} ${record.id}`);
      }
    }
    const copying = { goForwardOnly: false, snapshot: true };
    const { app, sink } = await boot(
      { ...copying, checkpointStore: { connection } },
      [Mailer, Catalog],
    );
    await sink.snapshot?.(
      [1, 2].map((id) => ({
        op: 'snapshot',
        relation: 'public.orders',
        schema: 'public',
        table: 'orders',
        record: { id },
        unchanged: [],
        columns: [],
      })),
      {
        pipeline: 'default',
        slotName: 'orders',
        mode: 'initial',
        relation: 'public.orders',
        snapshotLsn: 1n,
        firstForTable: true,
        complete: false,
        progress: null,
      },
    );
    expect(app.get(Mailer).sent).toEqual([
      'public.orders 1',
      'public.orders 2',
    ]);
    await expect(boot(copying, [Mailer, Copies])).rejects.toThrow(
      'Copies has @OnBatch() (copy)',
    );
    await expect(
      boot({ ...copying, batchDelivery: {} }, [Mailer, Copies]),
    ).rejects.toThrow('Copies has no @OnSnapshot(), but pipeline "default"');
    await expect(
      boot({ checkpointStore: { connection } }, [Mailer, Catalog]),
    ).rejects.toThrow('Catalog.copy has @OnSnapshot(), but pipeline "default"');
  });

  it('does not start with a sink of another mode', async () => {
    @ReplicantSink()
    class Single {
      @Checkpoint()
      readonly checkpoints = new MemoryKeeper();

      @OnTransaction()
      async apply(): Promise<void> {}
    }
    await expect(boot({ batchDelivery: {} }, [Single])).rejects.toThrow(
      'Single has @OnTransaction() (apply), which takes one transaction at a time',
    );
    await expect(
      boot({ checkpointStore: { connection } }, [Single]),
    ).rejects.toThrow('Single.checkpoints has @Checkpoint(), but the library');
    await expect(boot({}, [Mailer, Mails])).rejects.toThrow(
      'Mails has @OnChange() (confirm), which needs a checkpoint that the library keeps',
    );
    await expect(boot({}, [Mailer, Copies])).rejects.toThrow(
      'Copies has @OnBatch() (copy), which takes several transactions at a time',
    );
  });
});
