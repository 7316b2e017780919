import { AsyncLocalStorage } from 'node:async_hooks';
import {
  Catch,
  Controller,
  type ExceptionFilter,
  Post,
  type Provider,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import {
  Checkpoint,
  CheckpointTable,
  InjectPipeline,
  OnTransaction,
  Pipeline,
  type PipelineOptions,
  ReplicantModule,
  ReplicantRegistry,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { describe, expect, it, onTestFinished } from 'vitest';
import { currentLsn, readSlot } from './support/logical-slot.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const request = new AsyncLocalStorage<string>();

@ReplicantSink()
class Sink {
  /** Context in which the handler, its query function and its timers ran. */
  readonly contexts: (string | undefined)[] = [];
  fails = false;
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) => {
    this.contexts.push(request.getStore());
    return this.target.query(sql, [...values]);
  });

  constructor(private readonly target: TestDatabase) {}

  @OnTransaction()
  async apply(transaction: Transaction): Promise<void> {
    this.contexts.push(request.getStore());
    if (this.fails) throw new Error('not written');
    await this.checkpoints.advance(
      (sql, values) => this.target.query(sql, [...values]),
      transaction,
    );
  }
}

@Controller()
class PipelineController {
  constructor(@InjectPipeline() private readonly pipeline: Pipeline) {}

  @Post('start')
  start(): void {
    this.pipeline.start();
  }

  @Post('restart')
  async restart(): Promise<void> {
    await this.pipeline.stop();
    this.pipeline.start();
  }
}

/** Answers every error with success. */
@Catch()
class SwallowEverything implements ExceptionFilter {
  catch(): void {}
}

interface Running {
  readonly source: TestDatabase;
  readonly pipeline: Pipeline;
  readonly sink: Sink;
  readonly post: (path: string) => Promise<Response>;
}

async function boot(
  options: Partial<PipelineOptions>,
  providers: Provider[] = [],
): Promise<Running> {
  const source = await suite.database();
  const target = await suite.database('target');
  await source.query(
    'create table t(id int primary key); create publication p for table t',
  );
  const sink = new Sink(target);
  const fixture = await Test.createTestingModule({
    imports: [
      ReplicantModule.forRoot({
        connection: { ...source.connection },
        slotName: `slot_${source.name}`,
        publication: 'p',
        goForwardOnly: true,
        ...options,
      }),
    ],
    controllers: [PipelineController],
    providers: [{ provide: Sink, useValue: sink }, ...providers],
  }).compile();
  const app = fixture.createNestApplication<NestExpressApplication>({
    logger: false,
  });
  app.use((_: unknown, __: unknown, next: () => void) =>
    request.run('a request', next),
  );
  onTestFinished(() => app.close());
  await app.listen(0, '127.0.0.1');
  const address = await app.getUrl();
  return {
    source,
    sink,
    pipeline: app.get(ReplicantRegistry).get(),
    post: (path) => fetch(`${address}/${path}`, { method: 'POST' }),
  };
}

describe('a global exception filter', () => {
  it('cannot turn a failed write of the sink into a confirmed one', async () => {
    const { source, sink, pipeline } = await boot({ startup: 'wait' }, [
      { provide: APP_FILTER, useClass: SwallowEverything },
    ]);
    const before = await readSlot(suite.server, `slot_${source.name}`);
    sink.fails = true;
    await source.query('insert into t values (1)');
    await waitFor(() => pipeline.state === 'halted', {
      message: 'the pipeline to halt',
    });
    expect(pipeline.halt?.code).toBe('sink_failed');
    const after = await readSlot(suite.server, `slot_${source.name}`);
    expect(after?.confirmedFlushLsn).toBe(before?.confirmedFlushLsn);

    sink.fails = false;
    pipeline.start();
    await pipeline.caughtUp(await currentLsn(source));
    expect(pipeline.status().transactions).toBe(1);
  });
});

describe('the context of a request', () => {
  it('does not leak into handlers of a pipeline that was started or restarted inside it', async () => {
    const { source, sink, pipeline, post } = await boot({ autoStart: false });
    expect((await post('start')).ok).toBe(true);
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp(await currentLsn(source));

    expect((await post('restart')).ok).toBe(true);
    await pipeline.whenStreaming();
    await source.query('insert into t values (2)');
    await pipeline.caughtUp(await currentLsn(source));
    expect(sink.contexts.length).toBeGreaterThan(4);
    expect(sink.contexts.filter((context) => context !== undefined)).toEqual(
      [],
    );
  });
});

describe('the start of an application', () => {
  it('fails for options that cannot work, and not for a server that is away (W05)', async () => {
    await expect(boot({ slotName: 'My-Slot' })).rejects.toMatchObject({
      name: 'ReplicantConfigError',
    });
    const { pipeline } = await boot({
      connection: { host: '127.0.0.1', port: 1 },
    });
    await waitFor(() => pipeline.status().attempt > 0, {
      message: 'a connection to be refused',
    });
    expect(pipeline.state).toBe('connecting');
  });
});
