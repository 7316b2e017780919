import { Controller, Get, Module } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import {
  HealthCheck,
  type HealthCheckResult,
  HealthCheckService,
  TerminusModule,
} from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import {
  Checkpoint,
  CheckpointTable,
  Halt,
  type Pipeline,
  OnTransaction,
  ReplicantModule,
  ReplicantRegistry,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { codeBlocks } from '../tools/markdown.mjs';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const SECRET = 'row-value-4711';

@ReplicantSink()
class Sink {
  fails = false;
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.query(sql, [...values]),
  );

  constructor(private readonly target: TestDatabase) {}

  @OnTransaction()
  async apply(transaction: Transaction): Promise<void> {
    if (this.fails) throw new TypeError(SECRET);
    await this.checkpoints.advance(
      (sql, values) => this.target.query(sql, [...values]),
      transaction,
    );
  }
}

@Controller()
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly replicant: ReplicantHealthIndicator,
  ) {}

  @Get('live')
  @HealthCheck()
  live(): Promise<HealthCheckResult> {
    return this.health.check([() => this.replicant.liveness()]);
  }

  @Get('ready')
  @HealthCheck()
  ready(): Promise<HealthCheckResult> {
    return this.health.check([() => this.replicant.readiness()]);
  }

  @Get('startup')
  @HealthCheck()
  startup(): Promise<HealthCheckResult> {
    return this.health.check([() => this.replicant.startup()]);
  }
}

@Module({
  imports: [TerminusModule.forRoot({ logger: false })],
  controllers: [HealthController],
  providers: [ReplicantHealthIndicator],
})
class HealthModule {}

function partOf(whole: unknown, name: string): unknown {
  return typeof whole === 'object' && whole !== null
    ? Object.entries(whole).find(([key]) => key === name)?.[1]
    : undefined;
}

/** Names and kinds of everything; what is null may be of any kind. */
function shapeOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return Array.isArray(value) ? 'array' : 'value';
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, shapeOf(part)]),
  );
}

/** An application that serves its health over HTTP. */
class Served {
  private constructor(
    readonly pipeline: Pipeline,
    readonly sink: Sink,
    private readonly address: string,
  ) {}

  static async start(
    source: TestDatabase,
    target: TestDatabase,
  ): Promise<Served> {
    const sink = new Sink(target);
    const fixture = await Test.createTestingModule({
      imports: [
        ReplicantModule.forRoot({
          connection: { ...source.connection },
          slotName: `slot_${source.name}`,
          publication: 'p',
          goForwardOnly: true,
        }),
        HealthModule,
      ],
      providers: [{ provide: Sink, useValue: sink }],
    }).compile();
    const app = fixture.createNestApplication<NestExpressApplication>({
      logger: false,
    });
    onTestFinished(() => app.close());
    await app.listen(0, '127.0.0.1');
    return new Served(
      app.get(ReplicantRegistry).get(),
      sink,
      await app.getUrl(),
    );
  }

  /** HTTP codes of startup, liveness and readiness. */
  codes(): Promise<number[]> {
    return Promise.all(
      ['startup', 'live', 'ready'].map(
        async (probe) => (await fetch(`${this.address}/${probe}`)).status,
      ),
    );
  }

  /** What readiness says of pipelines that are down. */
  async failure(): Promise<unknown> {
    const answer: unknown = JSON.parse(await this.ready());
    return partOf(partOf(answer, 'error'), 'replicant');
  }

  async ready(): Promise<string> {
    return (await fetch(`${this.address}/ready`)).text();
  }
}

describe('health over HTTP', () => {
  it('follows a pipeline through a late start, an outage, a halt and recovery, and liveness stays up (W02)', async () => {
    const source = await suite.database();
    const target = await suite.database('target');
    await source.query(
      'create table t(id int primary key); create publication p for table t',
    );
    await suite.server.stop('fast');

    const served = await Served.start(source, target);
    await waitFor(() => served.pipeline.status().attempt > 0, {
      message: 'a connection to be refused',
    });
    expect(await served.codes()).toEqual([503, 200, 503]);

    await suite.server.startAgain();
    await served.pipeline.whenStreaming();
    expect(await served.codes()).toEqual([200, 200, 200]);

    await suite.server.stop('immediate');
    await waitFor(() => served.pipeline.state === 'reconnecting', {
      message: 'the pipeline to notice',
    });
    // Degraded and not down, for the time of a fail-over.
    expect(await served.codes()).toEqual([200, 200, 200]);
    expect(JSON.parse(await served.ready())).toMatchObject({
      details: {
        replicant: {
          status: 'degraded',
          pipelines: { default: { state: 'reconnecting' } },
        },
      },
    });

    await suite.server.startAgain();
    await waitFor(() => served.pipeline.state === 'streaming', {
      message: 'the pipeline to stream again',
      timeout: 30_000,
    });
    served.sink.fails = true;
    await source.query('insert into t values (1)');
    await waitFor(() => served.pipeline.state === 'halted', {
      message: 'the pipeline to halt',
    });
    expect(await served.codes()).toEqual([200, 200, 503]);
    const halted = await served.ready();
    expect(JSON.parse(halted)).toMatchObject({
      error: {
        replicant: {
          status: 'down',
          pipelines: {
            default: {
              state: 'halted',
              halt: {
                code: 'sink_failed',
                remedy: new Halt('sink_failed', { detail: '' }).remedy,
                delivery: 'transaction',
              },
            },
          },
        },
      },
    });
    expect(halted).not.toContain(SECRET);
    await waitFor(() => served.pipeline.status().slot !== null, {
      message: 'an answer to what the probes have asked',
    });
    const documented: unknown = JSON.parse(
      present(codeBlocks(readFileSync('docs/health.md', 'utf8'), 'json')[0])
        .code,
    );
    expect(shapeOf(documented)).toEqual(shapeOf(await served.failure()));

    served.sink.fails = false;
    served.pipeline.start();
    await served.pipeline.caughtUp();
    expect(await served.codes()).toEqual([200, 200, 200]);

    await served.pipeline.stop();
    expect(await served.codes()).toEqual([200, 200, 503]);
  }, 60_000);
});
