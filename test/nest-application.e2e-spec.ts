import type { INestApplicationContext, LoggerService } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantModule,
  ReplicantRegistry,
  ReplicantSink,
  type Pipeline,
  type PipelineOptions,
  type Transaction,
} from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { describe, expect, it, onTestFinished } from 'vitest';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

interface Source {
  'public.t': { id: number; secret: string };
}

/** Keeps the ids of inserted rows; what else it does with a transaction is the test's. */
@ReplicantSink()
class Ids {
  readonly ids: number[] = [];
  calls = 0;

  @Checkpoint()
  readonly checkpoints: CheckpointTable;

  constructor(
    private readonly target: TestDatabase,
    private readonly work: (tx: Transaction<Source>) => Promise<void>,
  ) {
    this.checkpoints = new CheckpointTable((sql, values) =>
      target.query(sql, [...values]),
    );
  }

  @OnTransaction()
  async apply(tx: Transaction<Source>): Promise<void> {
    this.calls += 1;
    await this.work(tx);
    const isNew = await this.checkpoints.advance(
      (sql, values) => this.target.query(sql, [...values]),
      tx,
    );
    if (!isNew) return;
    for await (const change of tx.changes) {
      if (change.op === 'insert') this.ids.push(change.record.id);
    }
  }
}

/** An application over two databases of the suite's server. */
class World {
  readonly lines: string[] = [];
  readonly #logger: LoggerService = {
    log: (message: unknown) => this.lines.push(`log ${String(message)}`),
    warn: (message: unknown) => this.lines.push(`warn ${String(message)}`),
    error: (message: unknown) => this.lines.push(`error ${String(message)}`),
  };

  private constructor(
    readonly source: TestDatabase,
    readonly target: TestDatabase,
  ) {}

  static async create(): Promise<World> {
    const [source, target] = [
      await suite.database(),
      await suite.database('target'),
    ];
    await source.query(
      'create table t(id int primary key, secret text); create publication p for table t',
    );
    return new World(source, target);
  }

  async boot(
    work: (tx: Transaction<Source>) => Promise<void> = async () => {},
    options: Partial<PipelineOptions> = {},
  ): Promise<{
    app: INestApplicationContext;
    pipeline: Pipeline;
    sink: Ids;
  }> {
    const sink = new Ids(this.target, work);
    const app = await Test.createTestingModule({
      imports: [
        TerminusModule.forRoot({ logger: false }),
        ReplicantModule.forRoot({
          connection: { ...this.source.connection },
          slotName: `slot_${this.source.name}`,
          publication: 'p',
          goForwardOnly: true,
          startup: 'wait',
          ...options,
        }),
      ],
      providers: [{ provide: Ids, useValue: sink }, ReplicantHealthIndicator],
    })
      .setLogger(this.#logger)
      .compile();
    await app.init();
    onTestFinished(() => app.close());
    return { app, pipeline: app.get(ReplicantRegistry).get(), sink };
  }

  async slotIsActive(): Promise<boolean> {
    const rows = await this.source.query<{ active: boolean }>(
      'select active from pg_replication_slots where slot_name = $1',
      [`slot_${this.source.name}`],
    );
    return rows[0]?.active ?? false;
  }

  errors(): string[] {
    return this.lines.filter((line) => line.startsWith('error'));
  }
}

describe('an application with a sink', () => {
  it('applies each transaction once over a restart, and closes without a line at error level', async () => {
    const world = await World.create();
    const first = await world.boot();
    await world.source.query("insert into t values (1, 'a')");
    await waitFor(() => first.sink.ids.length === 1);
    await first.app.close();
    expect(first.pipeline.state).toBe('stopped');
    expect(await world.slotIsActive()).toBe(false);

    await world.source.query("insert into t values (2, 'b')");
    const second = await world.boot();
    await waitFor(() => second.sink.ids.length === 1);
    await second.app.close();
    expect([first.sink.ids, second.sink.ids]).toEqual([[1], [2]]);
    expect(second.sink.calls).toBe(1);
    expect(world.errors()).toEqual([]);
  });

  it('finishes the running transaction when it is closed, and never hands it out again', async () => {
    const world = await World.create();
    let entered = false;
    let release = (): void => {};
    const { app, pipeline, sink } = await world.boot(async () => {
      entered = true;
      await new Promise<void>((resolve) => {
        release = resolve;
      });
    });
    await world.source.query("insert into t values (1, 'a')");
    await waitFor(() => entered);
    const closed = app.close();
    await waitFor(() => pipeline.state === 'draining');
    release();
    await closed;
    expect(sink.ids).toEqual([1]);

    const again = await world.boot();
    await world.source.query("insert into t values (2, 'b')");
    await waitFor(() => again.sink.ids.length === 1);
    expect(again.sink.ids).toEqual([2]);
    expect(again.sink.calls).toBe(1);
  });

  it('closes within drainTimeout, twice, when its sink never settles, and repeats the transaction afterwards', async () => {
    const world = await World.create();
    let entered = false;
    const { app, pipeline } = await world.boot(
      () => {
        entered = true;
        return new Promise<void>(() => {});
      },
      { drainTimeout: 500 },
    );
    await world.source.query("insert into t values (1, 'a')");
    await waitFor(() => entered);
    const begin = performance.now();
    await Promise.all([app.close(), app.close()]);
    expect(performance.now() - begin).toBeLessThan(3_000);
    expect(pipeline.state).toBe('stopped');
    await waitFor(async () => !(await world.slotIsActive()));
    expect(world.errors()).toEqual([]);

    const again = await world.boot();
    await waitFor(() => again.sink.ids.length === 1);
    expect(again.sink.ids).toEqual([1]);
  });

  it('shows a halt in the log and in health, with code and remedy and without a value', async () => {
    const world = await World.create();
    const { app, pipeline, sink } = await world.boot(async (tx) => {
      throw new Error(`cannot write ${JSON.stringify(tx.changes)}`);
    });
    const indicator = app.get(ReplicantHealthIndicator);
    const health = app.get(HealthCheckService);
    expect(await health.check([() => indicator.readiness()])).toMatchObject({
      status: 'ok',
    });
    await world.source.query("insert into t values (1, 'planted')");
    await waitFor(() => pipeline.state === 'halted');
    expect(sink.calls).toBe(1);
    const failure: unknown = await health
      .check([() => indicator.readiness()])
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({
      status: 503,
      response: {
        error: {
          replicant: {
            status: 'down',
            pipelines: {
              default: {
                halt: {
                  code: 'sink_failed',
                  remedy: pipeline.halt?.remedy,
                },
              },
            },
          },
        },
      },
    });
    expect(await health.check([() => indicator.liveness()])).toMatchObject({
      status: 'ok',
    });
    expect(world.errors()).toHaveLength(1);
    expect(world.errors()[0]).toContain('Pipeline "default" halted');
    expect(world.errors()[0]).toContain(pipeline.halt?.remedy);
    expect(JSON.stringify([world.lines, failure])).not.toContain('planted');
  });

  it('fails to start when the pipeline halts under startup: wait', async () => {
    const world = await World.create();
    await expect(
      world.boot(undefined, { publication: 'absent' }),
    ).rejects.toMatchObject({ halt: { code: 'publication/missing' } });
    expect(await world.slotIsActive()).toBe(false);
  });
});
