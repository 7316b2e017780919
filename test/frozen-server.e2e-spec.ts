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
  type Pipeline,
  ReplicantModule,
  ReplicantRegistry,
} from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { IdleSink } from './support/idle-sink.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import { waitFor } from './support/wait-for.js';

const PROBES_PER_SECOND = 50;
const SECONDS = 4;
const LIMIT_MS = 50;
/** Of a question about the slot: shorter than the probing, so that one is given up and the next begins meanwhile. */
const TIMEOUT_MS = 1_000;
const suite = useServer();

@Controller()
class Probes {
  constructor(
    private readonly health: HealthCheckService,
    private readonly replicant: ReplicantHealthIndicator,
  ) {}

  @Get('ready')
  @HealthCheck()
  ready(): Promise<HealthCheckResult> {
    return this.health.check([() => this.replicant.readiness()]);
  }

  /** What an answer costs on this machine that asks nothing. */
  @Get('nothing')
  @HealthCheck()
  nothing(): Promise<HealthCheckResult> {
    return this.health.check([]);
  }
}

@Module({
  imports: [TerminusModule.forRoot({ logger: false })],
  controllers: [Probes],
  providers: [ReplicantHealthIndicator],
})
class HealthModule {}

interface Served {
  readonly pipeline: Pipeline;
  readonly address: string;
  /** Questions about the slot that are under way. */
  readonly proxy: TcpProxy;
}

async function served(): Promise<Served> {
  const { source, target } = await sourceAndTarget(suite);
  const proxy = await TcpProxy.start(suite.server.connection);
  onTestFinished(() => proxy.close());
  const fixture = await Test.createTestingModule({
    imports: [
      ReplicantModule.forRoot({
        connection: { ...source.connection, port: proxy.port },
        slotName: `slot_${source.name}`,
        publication: 'p',
        goForwardOnly: true,
        startup: 'wait',
        health: { cacheFor: 10, timeout: TIMEOUT_MS },
      }),
      HealthModule,
    ],
    providers: [{ provide: IdleSink, useValue: new IdleSink(target) }],
  }).compile();
  const app = fixture.createNestApplication<NestExpressApplication>({
    logger: false,
  });
  onTestFinished(() => app.close());
  await app.listen(0, '127.0.0.1');
  const pipeline = app.get(ReplicantRegistry).get();
  return { pipeline, address: await app.getUrl(), proxy };
}

async function milliseconds(url: string): Promise<number> {
  const began = performance.now();
  const response = await fetch(url);
  await response.arrayBuffer();
  return performance.now() - began;
}

/** The part of the values, from 0 to 1, that is not above the answer. */
function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return present(sorted[Math.ceil(sorted.length * part) - 1]);
}

describe('50 probes a second', () => {
  it.each<[string, (of: Served) => Promise<() => void>]>([
    [
      'a server whose processes are frozen',
      async ({ pipeline }) => {
        const [slot] = await suite.server.query<{ active_pid: number }>(
          'select active_pid from pg_replication_slots where slot_name = $1',
          [pipeline.options.slotName],
        );
        const pids = [present(suite.server.pid), present(slot).active_pid];
        const signal = (name: NodeJS.Signals): void => {
          for (const pid of pids) process.kill(pid, name);
        };
        signal('SIGSTOP');
        return () => signal('SIGCONT');
      },
    ],
    [
      'a server behind a dead network',
      async ({ proxy }) => {
        proxy.cut();
        return () => proxy.restore();
      },
    ],
  ])(
    'are answered at once in front of %s, with one question under way',
    async (_, freeze) => {
      const one = await served();
      const { pipeline, address, proxy } = one;
      await waitFor(async () => {
        await pipeline.checkSlot();
        return pipeline.status().slot?.state === 'present';
      });
      await milliseconds(`${address}/ready`);
      await pipeline.checkSlot();
      const thaw = await freeze(one);
      const accepted = proxy.accepted;
      const probes: Promise<number>[] = [];
      const nothing: Promise<number>[] = [];
      try {
        for (let asked = 0; asked < PROBES_PER_SECOND * SECONDS; asked++) {
          probes.push(milliseconds(`${address}/ready`));
          nothing.push(milliseconds(`${address}/nothing`));
          await sleep(1_000 / PROBES_PER_SECOND);
        }
        const slowness = await Promise.all(probes);
        const ordinary = await Promise.all(nothing);
        // What the machine adds is what it adds to an answer that asks nothing.
        for (const part of [0.5, 0.95, 1]) {
          expect(quantile(slowness, part), `${part}`).toBeLessThan(
            LIMIT_MS + quantile(ordinary, part),
          );
        }
        expect(pipeline.status().slot).toMatchObject({
          state: 'unknown',
          reason: 'no answer in time',
        });
        const questions = proxy.accepted - accepted;
        expect(questions).toBeGreaterThan(1);
        expect(questions).toBeLessThanOrEqual(
          (SECONDS * 2_000) / TIMEOUT_MS + 1,
        );
      } finally {
        thaw();
      }
      await waitFor(
        async () => {
          await pipeline.checkSlot();
          return pipeline.status().slot?.state === 'present';
        },
        { timeout: 30_000, message: 'the server to be known again' },
      );
    },
    90_000,
  );
});
