import {
  Catch,
  Injectable,
  Module,
  type CanActivate,
  type DynamicModule,
  type ExceptionFilter,
  type LoggerService,
  type ModuleMetadata,
  type NestInterceptor,
  type OnModuleDestroy,
  type Type,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
  vi,
} from 'vitest';
import { MemoryKeeper } from '../../test/support/keeper.js';
import { nestMajor } from '../../test/support/nest-major.js';
import { StubPipeline, unreachable } from '../../test/support/stub-pipeline.js';
import { Checkpoint } from '../decorators/checkpoint.decorator.js';
import { OnTransaction } from '../decorators/on-transaction.decorator.js';
import { ReplicantSink } from '../decorators/replicant-sink.decorator.js';
import { Halt } from '../engine/model/halt.js';
import type { Transaction } from '../engine/model/transaction.js';
import { ReplicantModule } from '../replicant.module.js';
import { getPipelineToken } from './get-pipeline-token.js';

@ReplicantSink()
class OrdersSink {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();

  @OnTransaction()
  async apply(_tx: Transaction): Promise<void> {}
}

const transaction: Transaction = {
  pipeline: 'default',
  slotName: 'orders',
  xid: 7,
  commitLsn: 16n,
  commitEndLsn: 32n,
  commitTime: new Date(0),
  commitTimeMicros: 0n,
  changes: [],
  messages: [],
};

/** Keeps what is logged, as `level message`. */
class Lines implements LoggerService {
  readonly lines: string[] = [];

  log(message: unknown): void {
    this.lines.push(`log ${String(message)}`);
  }

  warn(message: unknown): void {
    this.lines.push(`warn ${String(message)}`);
  }

  error(message: unknown): void {
    this.lines.push(`error ${String(message)}`);
  }
}

function compile(
  stub: StubPipeline,
  metadata: ModuleMetadata = { providers: [OrdersSink] },
  logger: LoggerService = new Lines(),
): Promise<TestingModule> {
  const replicant = ReplicantModule.forRoot({ ...unreachable });
  return Test.createTestingModule({
    ...metadata,
    imports: metadata.imports ?? [replicant],
  })
    .overrideProvider(getPipelineToken())
    .useValue(stub)
    .setLogger(logger)
    .compile();
}

describe('start', () => {
  it('attaches the sink and starts the pipeline, without waiting until it streams', async () => {
    const stub = new StubPipeline('default');
    const app = await compile(stub);
    expect(stub.calls).toEqual([]);
    await app.init();
    expect(stub.calls).toEqual(['attach', 'start']);
    await app.close();
  });

  it('leaves a pipeline alone that has autoStart: false', async () => {
    const stub = new StubPipeline('default', {
      autoStart: false,
      startup: 'wait',
    });
    const app = await compile(stub);
    await app.init();
    expect(stub.calls).toEqual(['attach']);
    await app.close();
  });

  it("waits until the pipeline streams with startup: 'wait'", async () => {
    const stub = new StubPipeline('default', { startup: 'wait' });
    let streams = (): void => {};
    stub.streaming = () =>
      new Promise((resolve) => {
        streams = resolve;
      });
    const app = await compile(stub);
    let started = false;
    const init = app.init().then(() => {
      started = true;
    });
    await vi.waitFor(() => expect(stub.calls).toContain('whenStreaming'));
    expect(started).toBe(false);
    streams();
    await init;
    await app.close();
  });

  it("counts a pipeline that stands by as started with startup: 'wait', for it may never stream", async () => {
    const stub = new StubPipeline('default', {
      startup: 'wait',
      leaderElection: true,
    });
    stub.streaming = () => new Promise(() => {});
    const app = await compile(stub);
    let started = false;
    const init = app.init().then(() => {
      started = true;
    });
    await vi.waitFor(() => expect(stub.calls).toContain('whenStreaming'));
    stub.enter('reconnecting');
    await Promise.resolve();
    expect(started).toBe(false);
    stub.enter('standby');
    await init;
    await app.close();
  });

  it("fails with the reason and stops every pipeline when it halts under startup: 'wait'", async () => {
    const stub = new StubPipeline('default', { startup: 'wait' });
    stub.streaming = () => Promise.reject(new Error('publication/missing'));
    const app = await compile(stub);
    await expect(app.init()).rejects.toThrow('publication/missing');
    expect(stub.calls).toEqual(['attach', 'start', 'whenStreaming', 'stop']);
  });
});

describe('a sink', () => {
  it('is called past global filters, guards and interceptors', async () => {
    const touched: string[] = [];
    @Catch()
    class Filter implements ExceptionFilter {
      catch(): string {
        touched.push('filter');
        return 'answered';
      }
    }
    @Injectable()
    class Guard implements CanActivate {
      canActivate(): boolean {
        touched.push('guard');
        return false;
      }
    }
    @Injectable()
    class Interceptor implements NestInterceptor {
      intercept(): never {
        touched.push('interceptor');
        throw new Error('intercepted');
      }
    }
    @ReplicantSink()
    class Failing extends OrdersSink {
      override async apply(): Promise<void> {
        throw new Error('write failed');
      }
    }
    const stub = new StubPipeline('default');
    const app = await compile(stub, {
      providers: [
        Failing,
        { provide: APP_FILTER, useClass: Filter },
        { provide: APP_GUARD, useClass: Guard },
        { provide: APP_INTERCEPTOR, useClass: Interceptor },
      ],
    });
    await app.createNestApplication({ logger: false }).init();
    await expect(stub.sink?.transaction?.(transaction)).rejects.toThrow(
      'write failed',
    );
    expect(touched).toEqual([]);
    await app.close();
  });
});

describe('shutdown', () => {
  /** Lets the pipeline drain for a while, and notes whether the sink's database is open before and after. */
  async function drain(arrangement: {
    replicantGlobal: boolean;
    databaseGlobal: boolean;
    replicantFirst: boolean;
    databaseIn:
      'own module' | "the sink's module" | 'module of another feature';
  }): Promise<string[]> {
    const seen: string[] = [];
    @Injectable()
    class Database implements OnModuleDestroy {
      open = true;

      onModuleDestroy(): void {
        this.open = false;
        seen.push('database closed');
      }
    }
    @ReplicantSink()
    class Writing extends OrdersSink implements OnModuleDestroy {
      constructor(readonly database: Database) {
        super();
      }

      onModuleDestroy(): void {
        seen.push('sink destroyed');
      }
    }
    class DatabaseModule {}
    const database: DynamicModule = {
      module: DatabaseModule,
      providers: [Database],
      exports: [Database],
      global: arrangement.databaseGlobal,
    };
    const apart = arrangement.databaseIn !== "the sink's module";
    class Feature {}
    const feature: DynamicModule = {
      module: Feature,
      imports: apart ? [database] : [],
      providers: apart ? [Writing] : [Writing, Database],
    };
    class Other {}
    const other: DynamicModule = { module: Other, imports: [database] };
    const replicant = ReplicantModule.forRoot({
      ...unreachable,
      isGlobal: arrangement.replicantGlobal,
    });
    const rest =
      arrangement.databaseIn === 'module of another feature'
        ? [other, feature]
        : [feature];
    const stub = new StubPipeline('default');
    const app = await compile(stub, {
      imports: arrangement.replicantFirst
        ? [replicant, ...rest]
        : [...rest, replicant],
    });
    await app.init();
    const { database: held } = app.get(Writing, { strict: false });
    let stopped: Promise<void> | null = null;
    stub.onStop = () =>
      (stopped ??= (async (): Promise<void> => {
        const before = held.open;
        await new Promise((resolve) => {
          setTimeout(resolve, 50);
        });
        seen.push(`drained, open ${before} and ${held.open}`);
      })());
    await app.close();
    return seen;
  }

  const booleans = [true, false];
  const places = [
    'own module',
    'module of another feature',
    // Nest 11 runs the hooks of one module at once.
    ...(nestMajor >= 12 ? ["the sink's module" as const] : []),
  ] as const;
  const arrangements = places.flatMap((databaseIn) =>
    booleans.flatMap((replicantGlobal) =>
      booleans.flatMap((databaseGlobal) =>
        booleans.map((replicantFirst) => ({
          databaseIn,
          replicantGlobal,
          databaseGlobal,
          replicantFirst,
        })),
      ),
    ),
  );

  it.each(arrangements)(
    'drains while the database of the sink is open: $databaseIn, $replicantGlobal $databaseGlobal $replicantFirst',
    async (arrangement) => {
      expect(await drain(arrangement)).toEqual([
        'drained, open true and true',
        'sink destroyed',
        'database closed',
      ]);
    },
  );

  it('drains before a sink that is provided as a value is destroyed', async () => {
    const stub = new StubPipeline('default');
    const calls = stub.calls;
    class Watching extends OrdersSink implements OnModuleDestroy {
      onModuleDestroy(): void {
        calls.push('sink destroyed');
      }
    }
    const app = await compile(stub, {
      providers: [{ provide: 'SINK', useValue: new Watching() }],
    });
    await app.init();
    calls.length = 0;
    await app.close();
    expect(calls.slice(0, 2)).toEqual(['stop', 'sink destroyed']);
  });

  it('stops a pipeline that was started again while the application shut down', async () => {
    const stub = new StubPipeline('default');
    let running = false;
    stub.onStart = () => {
      running = true;
    };
    stub.onStop = async () => {
      running = false;
    };
    @Injectable()
    class Restless {
      beforeApplicationShutdown(): void {
        stub.start();
      }
    }
    const app = await compile(stub, {
      imports: [
        holding(Restless),
        ReplicantModule.forRoot({ ...unreachable, isGlobal: false }),
      ],
      providers: [OrdersSink],
    });
    await app.init();
    await app.close();
    expect(running).toBe(false);
  });

  it('can be asked for twice', async () => {
    const stub = new StubPipeline('default');
    const logger = new Lines();
    const app = await compile(stub, undefined, logger);
    await app.init();
    await Promise.all([app.close(), app.close()]);
    await app.close();
    expect(stub.calls).toContain('stop');
    // Nest reports what a shutdown hook throws, and goes on.
    expect(logger.lines.filter((line) => line.startsWith('error'))).toEqual([]);
  });

  it('stops a pipeline of an application that never started', async () => {
    const stub = new StubPipeline('default');
    const app = await compile(stub);
    await app.close();
    expect(stub.calls).not.toContain('start');
  });
});

function holding(...providers: Type[]): Type {
  @Module({ providers })
  class Holder {}
  return Holder;
}

describe('the log', () => {
  const logger = new Lines();
  let stub: StubPipeline;
  let app: TestingModule;

  beforeEach(async () => {
    stub = new StubPipeline('default');
    app = await compile(stub, undefined, logger);
    await app.init();
    logger.lines.length = 0;
  });
  afterEach(() => app.close());

  it('has one line at error level for a halt, without what the sink said', () => {
    const halt = new Halt('sink_failed', {
      detail: 'OrdersSink rejected a transaction',
      lsn: 0x16_b374_d848n,
      sinkError: new Error('secret'),
    });
    stub.emit('halt', { halt });
    stub.enter('halted', 'sink_failed');
    expect(logger.lines).toEqual([
      `error Pipeline "default" halted at 16/B374D848: sink_failed (OrdersSink rejected a transaction). ${halt.remedy}`,
    ]);
  });

  it('has one line when a halted pipeline streams again', () => {
    stub.emit('halt', {
      halt: new Halt('publication/missing', { detail: 'orders_pub' }),
    });
    stub.enter('halted');
    logger.lines.length = 0;
    stub.enter('connecting');
    stub.enter('streaming');
    stub.enter('reconnecting');
    stub.enter('streaming');
    expect(logger.lines).toEqual([
      'log Pipeline "default" streams again after publication/missing',
      'log Pipeline "default" streams again',
    ]);
  });

  it('has one line for each reason to connect again, and not one for each attempt', () => {
    stub.enter('reconnecting', 'connection reset');
    for (const [attempt, reason] of [
      'connection reset',
      'connection refused',
      'connection refused',
      'connection reset',
    ].entries())
      stub.emit('reconnect', {
        reason,
        attempt: attempt + 1,
        delayMilliseconds: 500,
      });
    stub.enter('streaming');
    stub.emit('reconnect', {
      reason: 'connection reset',
      attempt: 1,
      delayMilliseconds: 500,
    });
    expect(logger.lines).toEqual([
      'warn Pipeline "default" connects again in 500 ms (attempt 1): connection reset',
      'warn Pipeline "default" connects again in 500 ms (attempt 2): connection refused',
      'warn Pipeline "default" connects again in 500 ms (attempt 4): connection reset',
      'log Pipeline "default" streams again',
      'warn Pipeline "default" connects again in 500 ms (attempt 1): connection reset',
    ]);
  });

  it('repeats a reason that stays the same after half a minute', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    for (let second = 0; second < 61; second++) {
      stub.emit('reconnect', {
        reason: 'the slot is held by process 7',
        attempt: second + 1,
        delayMilliseconds: 1_000,
      });
      vi.advanceTimersByTime(1_000);
    }
    expect(logger.lines).toHaveLength(3);
  });

  it('has one line for a schema change that passes', () => {
    const shape = {
      oid: 1,
      schema: 'public',
      table: 't',
      name: 'public.t',
      replicaIdentity: 'default',
      columns: [],
    };
    stub.emit('schemaChange', {
      change: {
        effect: 'additive',
        change: 'column_added',
        relation: 'public.t',
        detail: 'added "note"',
        before: shape,
        after: shape,
      },
      commitLsn: 0x10n,
    });
    expect(logger.lines).toEqual([
      'log Pipeline "default" goes on with the additive schema change at 0/10: public.t: added "note"',
    ]);
  });

  it('has one line for each step of a snapshot', () => {
    const mode = 'incremental';
    const started = { mode, tables: 3, resumed: false } as const;
    stub.emit('snapshotStarted', { ...started, done: 0 });
    stub.emit('snapshotTable', { table: 'public.t', rows: 1 });
    stub.emit('snapshotTableAgain', { table: 'public.log' });
    stub.emit('snapshotStarted', { ...started, done: 1, resumed: true });
    stub.emit('snapshotStarted', { ...started, done: 2 });
    stub.emit('snapshotCompleted', {
      mode,
      tables: 3,
      rows: 1_200,
      durationMilliseconds: 2_345,
    });
    const title = 'log Pipeline "default"';
    expect(logger.lines).toEqual([
      `${title} copies the rows of 3 tables (incremental snapshot)`,
      `${title} has copied public.t: 1 row`,
      `${title} copies public.log again, since it was written to meanwhile and has no key`,
      `${title} goes on with the incremental snapshot: 1 of 3 tables done`,
      `${title} copies the rows of 1 table (incremental snapshot), beside 2 copied before`,
      `${title} has completed the incremental snapshot of 3 tables: 1200 rows in 2.3 s`,
    ]);
  });

  it('has one line when it becomes a standby, and one when it takes over', () => {
    stub.enter('standby', 'the slot is held by process 7 of the server');
    // What the engine says of later polls is no event.
    stub.enter('streaming');
    expect(logger.lines).toEqual([
      'log Pipeline "default" is standby: the slot is held by process 7 of the server',
      `log Pipeline "default" takes over slot ${stub.options.slotName}`,
    ]);
  });

  it('has a line for the take-over of a standby that lost its connection in between, and none of it after a stop', () => {
    stub.enter('standby', 'held');
    stub.enter('reconnecting', 'connection reset');
    stub.enter('streaming');
    stub.enter('standby', 'held');
    stub.enter('stopped');
    stub.enter('connecting');
    stub.enter('streaming');
    expect(logger.lines).toEqual([
      'log Pipeline "default" is standby: held',
      `log Pipeline "default" takes over slot ${stub.options.slotName}`,
      'log Pipeline "default" is standby: held',
      `log Pipeline "default" streams from slot ${stub.options.slotName}`,
    ]);
  });

  it('has one line for each reason to try again, and not one for each attempt', () => {
    const reason = 'a handler of OrdersSink failed with Error';
    for (const [attempt, of] of [
      'sink',
      'sink',
      'checkpoint',
      'sink',
    ].entries())
      stub.emit('retry', {
        of,
        reason,
        attempt: attempt + 1,
        maxRetries: 5,
        delayMilliseconds: 1_000,
      });
    expect(logger.lines).toEqual([
      `warn Pipeline "default" tries the sink again in 1000 ms (attempt 1 of 5): ${reason}`,
      `warn Pipeline "default" tries the checkpoint again in 1000 ms (attempt 3 of 5): ${reason}`,
      `warn Pipeline "default" tries the sink again in 1000 ms (attempt 4 of 5): ${reason}`,
    ]);
  });

  it('tells at most twice a minute that the sink is tried again for the same reason', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    for (let second = 0; second < 60; second++) {
      stub.emit('retry', {
        of: 'sink',
        reason: 'a handler of OrdersSink failed with Error',
        attempt: 1,
        maxRetries: 1,
        delayMilliseconds: 1_000,
      });
      stub.enter('streaming');
      vi.advanceTimersByTime(1_000);
    }
    expect(
      logger.lines.filter((line) => line.includes('tries the sink')),
    ).toHaveLength(2);
  });

  it('has one line for what was passed over, and none for batches and messages', () => {
    stub.emit('skipped', { of: 'transaction', lsn: 0x16_b374_d848n });
    stub.emit('batch', { transactions: 3, commitLsn: 1n });
    stub.emit('message', { lsn: 1n, bytes: 1 });
    expect(logger.lines).toEqual([
      'warn Pipeline "default" has passed over the transaction at 16/B374D848 as skipTransaction() was told: the sink never gets it',
    ]);
  });

  it('has one line for a warning', () => {
    stub.emit('warning', { message: 'wal_sender_timeout is 0' });
    expect(logger.lines).toEqual([
      'warn Pipeline "default": wal_sender_timeout is 0',
    ]);
  });

  it('has no line at error level for a clean stop', async () => {
    stub.enter('streaming');
    stub.onStop = async () => {
      stub.enter('draining', 'stop() was called');
      stub.enter('stopped', 'stop() was called');
    };
    await app.close();
    expect(logger.lines.filter((line) => line.startsWith('error'))).toEqual([]);
  });
});

describe('the hint about SIGTERM', () => {
  const logger = new Lines();
  const hints = (): string[] =>
    logger.lines.filter((line) => line.includes('SIGTERM'));
  const listeners = process.listeners('SIGTERM');

  beforeEach(() => {
    vi.useFakeTimers();
    process.removeAllListeners('SIGTERM');
    logger.lines.length = 0;
  });
  afterEach(() => {
    vi.useRealTimers();
    process.removeAllListeners('SIGTERM');
    for (const listener of listeners) process.on('SIGTERM', listener);
  });

  it('is given once an application streams without shutdown hooks', async () => {
    const stub = new StubPipeline('default');
    const app = await compile(stub, undefined, logger);
    await app.init();
    vi.advanceTimersByTime(60_000);
    expect(hints()).toEqual([]);
    for (const state of ['streaming', 'reconnecting', 'streaming'] as const) {
      stub.enter(state);
      vi.advanceTimersByTime(60_000);
    }
    expect(hints()).toEqual([
      'warn Nothing listens to SIGTERM, so it ends the process without draining and the running transaction is repeated after the next start; call app.enableShutdownHooks().',
    ]);
    await app.close();
  });

  it('is not given when shutdown hooks are enabled right after the start', async () => {
    const stub = new StubPipeline('default');
    stub.onStart = () => stub.enter('streaming');
    const app = await compile(stub, undefined, logger);
    await app.init();
    app.enableShutdownHooks();
    vi.advanceTimersByTime(60_000);
    expect(hints()).toEqual([]);
    await app.close();
  });

  it('is not given, and leaves no timer, when the application ends first', async () => {
    const stub = new StubPipeline('default');
    const app = await compile(stub, undefined, logger);
    await app.init();
    stub.enter('streaming');
    await app.close();
    expect(vi.getTimerCount()).toBe(0);
    expect(hints()).toEqual([]);
  });
});
