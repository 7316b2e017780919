import { ConsoleLogger } from '@nestjs/common';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../../test/support/keeper.js';
import { StubPipeline, unreachable } from '../../test/support/stub-pipeline.js';
import { Checkpoint } from '../decorators/checkpoint.decorator.js';
import { OnTransaction } from '../decorators/on-transaction.decorator.js';
import { ReplicantSink } from '../decorators/replicant-sink.decorator.js';
import type { Transaction } from '../engine/model/transaction.js';
import { getPipelineToken } from '../pipelines/get-pipeline-token.js';
import { ReplicantModule } from '../replicant.module.js';
import { ReplicantHealthIndicator } from './replicant.health-indicator.js';

class Base {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();

  @OnTransaction()
  async apply(_tx: Transaction): Promise<void> {}
}
@ReplicantSink('orders')
class OrdersSink extends Base {}
@ReplicantSink('audit')
class AuditSink extends Base {}

describe('ReplicantHealthIndicator', () => {
  let orders: StubPipeline;
  let audit: StubPipeline;
  let indicator: ReplicantHealthIndicator;
  let health: HealthCheckService;
  let close: () => Promise<void>;

  beforeEach(async () => {
    orders = new StubPipeline('orders');
    audit = new StubPipeline('audit');
    const app = await Test.createTestingModule({
      imports: [
        TerminusModule,
        ReplicantModule.forRoot({
          pipelines: {
            orders: unreachable,
            audit: { ...unreachable, slotName: 'audit' },
          },
        }),
      ],
      providers: [OrdersSink, AuditSink, ReplicantHealthIndicator],
    })
      .overrideProvider(getPipelineToken('orders'))
      .useValue(orders)
      .overrideProvider(getPipelineToken('audit'))
      .useValue(audit)
      .setLogger(new ConsoleLogger({ logLevels: [] }))
      .compile();
    await app.init();
    indicator = app.get(ReplicantHealthIndicator);
    health = app.get(HealthCheckService);
    close = (): Promise<void> => app.close();
    orders.enter('streaming');
    audit.enter('streaming');
  });
  afterEach(() => close());

  it('is up while every pipeline streams, and shows each', () => {
    expect(indicator.readiness()).toEqual({
      replicant: {
        status: 'up',
        pipelines: {
          orders: {
            ...orders.status(),
            health: 'up',
            conditions: ['streaming'],
          },
          audit: {
            ...audit.status(),
            health: 'up',
            conditions: ['streaming'],
          },
        },
      },
    });
  });

  it('answers under the key it is given', () => {
    expect(Object.keys(indicator.startup('cdc'))).toEqual(['cdc']);
  });

  it('is as bad as its worst pipeline', () => {
    audit.enter('reconnecting');
    expect(indicator.readiness()).toMatchObject({
      replicant: {
        status: 'degraded',
        pipelines: { orders: { health: 'up' }, audit: { health: 'degraded' } },
      },
    });
    audit.since = new Date(Date.now() - 61_000);
    expect(indicator.readiness()).toMatchObject({
      replicant: { status: 'down' },
    });
    expect(indicator.liveness()).toMatchObject({ replicant: { status: 'up' } });
  });

  it('is down, with code and remedy, when a pipeline has halted', async () => {
    const halt = {
      code: 'publication/missing',
      remedy: 'Create it.',
      detail: 'orders_pub',
      lsn: null,
      at: 'now',
    };
    orders.enter('halted');
    const status = orders.status();
    orders.status = () => ({ ...status, halt });
    await expect(
      health.check([() => indicator.readiness()]),
    ).rejects.toMatchObject({
      status: 503,
      response: {
        error: {
          replicant: {
            status: 'down',
            pipelines: { orders: { health: 'down', halt } },
          },
        },
      },
    });
    await expect(
      health.check([() => indicator.liveness()]),
    ).resolves.toMatchObject({ status: 'ok' });
  });

  it('is degraded while rows are copied, with the figures', () => {
    orders.enter('snapshotting');
    const snapshot = { state: 'copying', rows: 10, estimatedRows: 100 };
    const status = orders.status();
    orders.status = () => ({ ...status, snapshot });
    expect(indicator.readiness()).toMatchObject({
      replicant: {
        status: 'degraded',
        pipelines: {
          orders: {
            health: 'degraded',
            conditions: ['snapshotting'],
            snapshot,
          },
        },
      },
    });
    expect(indicator.startup()).toMatchObject({ replicant: { status: 'up' } });
    orders.status = () => ({
      ...status,
      state: 'streaming',
      snapshot,
      neverCopied: { count: 1, tables: ['public.late'] },
    });
    expect(indicator.readiness()).toMatchObject({
      replicant: {
        pipelines: {
          orders: {
            conditions: ['streaming', 'copying', 'not_copied'],
            neverCopied: { count: 1, tables: ['public.late'] },
          },
        },
      },
    });
  });

  it('is what the options of each pipeline make of it', () => {
    const { health: defaults } = orders.options;
    Object.assign(orders, {
      options: {
        ...orders.options,
        health: { ...defaults, readiness: 'lenient', livenessOnHalt: 'down' },
      },
    });
    orders.enter('halted');
    expect(indicator.readiness()).toMatchObject({
      replicant: { status: 'degraded' },
    });
    expect(indicator.liveness()).toMatchObject({
      replicant: { status: 'down' },
    });
    audit.enter('halted');
    expect(indicator.readiness()).toMatchObject({
      replicant: { status: 'down' },
    });
  });

  it('asks about the slots with each probe, and waits for no answer', () => {
    let answered = false;
    orders.checkSlot = async () => {
      await new Promise(() => {});
      answered = true;
    };
    audit.calls.length = 0;
    expect(indicator.readiness()).toMatchObject({
      replicant: { status: 'up' },
    });
    expect([answered, audit.calls]).toEqual([false, ['checkSlot']]);
  });

  it('remembers from probe to probe that a limit was exceeded', () => {
    const status = orders.status();
    const lags = [2 ** 30 + 1, 2 ** 30, 2 ** 29];
    orders.status = () => ({
      ...status,
      lag: { bytes: lags.shift(), milliseconds: 0 },
    });
    const answers = [1, 2, 3].map(() => indicator.readiness());
    expect(answers).toMatchObject([
      {
        replicant: {
          status: 'degraded',
          pipelines: { orders: { conditions: ['streaming', 'lag'] } },
        },
      },
      { replicant: { status: 'degraded' } },
      { replicant: { status: 'up' } },
    ]);
  });

  it('answers instead of throwing, and repeats no message of an error', () => {
    orders.status = () => {
      throw new TypeError('secret');
    };
    expect(indicator.readiness()).toEqual({
      replicant: { status: 'down', message: 'TypeError' },
    });
  });
});
