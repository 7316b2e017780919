import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  Checkpoint,
  CheckpointTable,
  definePipeline,
  OnTransaction,
  type PipelineName,
  ReplicantModule,
  ReplicantRegistry,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { describe, expect, it, onTestFinished } from 'vitest';
import { confirmedUpTo, currentLsn } from './support/logical-slot.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer();
const audit = definePipeline('audit');

/** What both sinks write to. */
@Injectable()
class Target {
  constructor(readonly database: TestDatabase) {}
}

/** Decorated methods are inherited; the base class itself is no sink. */
abstract class LedgerSink {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.database.query(sql, [...values]),
  );

  constructor(protected readonly target: Target) {}

  @OnTransaction()
  async apply(transaction: Transaction): Promise<void> {
    const client = await this.target.database.connect();
    await client.query('begin');
    const isNew = await this.checkpoints.advance(
      (sql, values) => client.query(sql, [...values]),
      transaction,
    );
    if (isNew)
      for await (const change of transaction.changes)
        await client.query('insert into applied values ($1, $2)', [
          transaction.slotName,
          change.relation,
        ]);
    await client.query('commit');
    await client.end();
  }
}

/** An application with two pipelines whose sinks share one target database. */
async function boot(
  source: TestDatabase,
  target: TestDatabase,
): Promise<{ registry: ReplicantRegistry; close: () => Promise<void> }> {
  @ReplicantSink('orders')
  class OrdersSink extends LedgerSink {}
  @ReplicantSink(audit)
  class AuditSink extends LedgerSink {}
  const targetProvider = {
    provide: Target,
    useValue: new Target(target),
  };
  @Module({
    providers: [
      targetProvider,
      {
        provide: OrdersSink,
        useFactory: (own: Target) => new OrdersSink(own),
        inject: [Target],
      },
      {
        provide: AuditSink,
        useFactory: (own: Target) => new AuditSink(own),
        inject: [Target],
      },
    ],
    exports: [OrdersSink],
  })
  class SinksModule {}
  @Module({ imports: [SinksModule] })
  class OneImporter {}
  @Module({ imports: [SinksModule] })
  class OtherImporter {}

  const names: PipelineName[] = ['orders', audit];
  const app = await Test.createTestingModule({
    imports: [
      ReplicantModule.forRootAsync({
        pipelines: names,
        useFactory: () => ({
          connection: { ...source.connection },
          pipelines: {
            orders: {
              slotName: `orders_${source.name}`,
              publication: 'orders_pub',
              goForwardOnly: true,
              startup: 'wait',
            },
            audit: {
              slotName: `audit_${source.name}`,
              publication: 'audit_pub',
              goForwardOnly: true,
              startup: 'wait',
            },
          },
        }),
      }),
      OneImporter,
      OtherImporter,
    ],
  }).compile();
  app.useLogger(false);
  onTestFinished(() => app.close());
  await app.init();
  return { registry: app.get(ReplicantRegistry), close: () => app.close() };
}

describe('two pipelines of one application over one target database', () => {
  it('keep their checkpoints apart, and each sink is found once however many modules import it (W04)', async () => {
    const source = await suite.database();
    const target = await suite.database('target');
    await source.query(
      `create table orders(id int primary key); create table logins(id int primary key);
       create publication orders_pub for table orders; create publication audit_pub for table orders, logins`,
    );
    await target.query('create table applied(slot_name text, relation text)');
    const first = await boot(source, target);
    await source.query('insert into orders values (1)');
    await source.query('insert into logins values (1), (2)');
    const end = await currentLsn(source);
    await Promise.all(
      first.registry.all().map((pipeline) => pipeline.caughtUp(end)),
    );
    await first.close();
    await source.query('insert into orders values (2)');
    const second = await boot(source, target);
    const later = await currentLsn(source);
    await Promise.all(
      second.registry.all().map((pipeline) => pipeline.caughtUp(later)),
    );
    expect(
      await target.query(
        `select split_part(slot_name, '_', 1) as pipeline, relation, count(*)::int from applied group by 1, 2 order by 1, 2`,
      ),
    ).toEqual([
      { pipeline: 'audit', relation: 'public.logins', count: 2 },
      { pipeline: 'audit', relation: 'public.orders', count: 2 },
      { pipeline: 'orders', relation: 'public.orders', count: 2 },
    ]);
    expect(
      await target.query(
        'select slot_name from replicant_checkpoints order by slot_name',
      ),
    ).toEqual([
      { slot_name: `audit_${source.name}` },
      { slot_name: `orders_${source.name}` },
    ]);
  });

  it('go on without each other: one that halted holds back its own slot alone', async () => {
    const source = await suite.database();
    const target = await suite.database('target');
    await source.query(
      `create table orders(id int primary key); create table logins(id int primary key);
       create publication orders_pub for table orders; create publication audit_pub for table orders, logins`,
    );
    await target.query(
      `create table applied(slot_name text, relation text check (relation <> 'public.logins'))`,
    );
    const { registry } = await boot(source, target);
    await source.query('insert into logins values (1)');
    await source.query('insert into orders values (1)');
    const end = await currentLsn(source);
    await registry.get('orders').caughtUp(end);
    await expect(registry.get(audit).caughtUp(end)).rejects.toThrow(
      'sink_failed',
    );
    expect(registry.get('orders').state).toBe('streaming');
    await confirmedUpTo(source, `orders_${source.name}`, end);
    const [slots] = await source.query<{ behind: boolean }>(
      `select (select confirmed_flush_lsn from pg_replication_slots where slot_name = $1)
            < (select confirmed_flush_lsn from pg_replication_slots where slot_name = $2) as behind`,
      [`audit_${source.name}`, `orders_${source.name}`],
    );
    expect(slots).toEqual({ behind: true });
  });
});
