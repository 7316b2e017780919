import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { INestApplicationContext, LoggerService } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemoryKeeper } from '../../test/support/keeper.js';
import { unreachable } from '../../test/support/stub-pipeline.js';
import { Checkpoint } from '../decorators/checkpoint.decorator.js';
import { OnTransaction } from '../decorators/on-transaction.decorator.js';
import { ReplicantSink } from '../decorators/replicant-sink.decorator.js';
import type { Transaction } from '../engine/model/transaction.js';
import type { PipelineOptions } from '../engine/options/pipeline-options.js';
import { Pipeline } from '../engine/pipeline.js';
import { ReplicantModule } from '../replicant.module.js';
import { getPipelineToken } from './get-pipeline-token.js';

const DRAIN_TIMEOUT_MS = 2_000;

@ReplicantSink()
class OrdersSink {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();

  @OnTransaction()
  async apply(_tx: Transaction): Promise<void> {}
}

describe('closing an application whose pipeline is connecting', () => {
  const errors: string[] = [];
  const logger: LoggerService = {
    log: () => {},
    warn: () => {},
    error: (message: unknown) => errors.push(String(message)),
  };
  /** Accepts connections and never answers. */
  let silent: Server;
  let sockets: Socket[];

  beforeEach(async () => {
    errors.length = 0;
    sockets = [];
    silent = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.resume();
    });
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    silent.close();
    await once(silent, 'close');
  });

  async function boot(
    options: Partial<PipelineOptions> = {},
  ): Promise<INestApplicationContext> {
    const address = silent.address();
    if (address === null || typeof address === 'string') {
      throw new Error('The silent server does not listen on TCP.');
    }
    const { port } = address;
    const app = await Test.createTestingModule({
      imports: [
        ReplicantModule.forRoot({
          ...unreachable,
          connection: {
            host: '127.0.0.1',
            port,
            user: 'nobody',
            database: 'none',
          },
          drainTimeout: DRAIN_TIMEOUT_MS,
          ...options,
        }),
      ],
      providers: [OrdersSink],
    })
      .setLogger(logger)
      .compile();
    return app.init();
  }

  async function took(work: Promise<unknown>): Promise<number> {
    const begin = performance.now();
    await work;
    return performance.now() - begin;
  }

  function resources(): string[] {
    return process
      .getActiveResourcesInfo()
      .filter((kind) => /TCP|Timeout|Immediate|GetAddrInfo/.test(kind));
  }

  it('ends in time, twice at once and once more, and leaves no handle', async () => {
    const before = resources().length;
    const app = await boot();
    await vi.waitFor(() => expect(sockets).toHaveLength(1));
    expect(await took(Promise.all([app.close(), app.close()]))).toBeLessThan(
      DRAIN_TIMEOUT_MS,
    );
    expect(await took(app.close())).toBeLessThan(DRAIN_TIMEOUT_MS);
    expect(app.get<Pipeline>(getPipelineToken()).state).toBe('stopped');
    await vi.waitFor(() =>
      expect(sockets.every((socket) => socket.destroyed)).toBe(true),
    );
    await vi.waitFor(() =>
      expect(resources().length).toBeLessThanOrEqual(before),
    );
    expect(errors).toEqual([]);
  });

  it('ends in time between two attempts, and makes no third', async () => {
    const app = await boot({ connection: unreachable.connection });
    const pipeline = app.get<Pipeline>(getPipelineToken());
    await vi.waitFor(() =>
      expect(pipeline.status().nextRetryAt).not.toBeNull(),
    );
    expect(await took(app.close())).toBeLessThan(DRAIN_TIMEOUT_MS);
    expect(pipeline.status()).toMatchObject({
      state: 'stopped',
      nextRetryAt: null,
    });
    expect(errors).toEqual([]);
  });

  it('ends in time while the function that returns the connection is still at work', async () => {
    let asked = false;
    const app = await boot({
      connection: () => {
        asked = true;
        return new Promise<string>(() => {});
      },
    });
    await vi.waitFor(() => expect(asked).toBe(true));
    expect(await took(app.close())).toBeLessThan(DRAIN_TIMEOUT_MS + 1_000);
    expect(app.get<Pipeline>(getPipelineToken()).state).toBe('stopped');
  });

  it('leaves a pipeline alone that was never started', async () => {
    const app = await boot({ autoStart: false });
    await app.close();
    expect(app.get<Pipeline>(getPipelineToken()).state).toBe('idle');
    expect(sockets).toEqual([]);
  });

  it('starts and stops ten times without a line at error level', async () => {
    for (let round = 0; round < 10; round += 1) {
      const app = await boot();
      await vi.waitFor(() => expect(sockets).toHaveLength(round + 1));
      await app.close();
    }
    expect(errors).toEqual([]);
  });
});

describe('two applications in one process', () => {
  it('stop without each other', async () => {
    const boot = async (): Promise<INestApplicationContext> => {
      const app = await Test.createTestingModule({
        imports: [ReplicantModule.forRoot(unreachable)],
        providers: [OrdersSink],
      })
        .setLogger({ log: () => {}, warn: () => {}, error: () => {} })
        .compile();
      return app.init();
    };
    const [one, two] = [await boot(), await boot()];
    await one.close();
    expect(one.get<Pipeline>(getPipelineToken()).state).toBe('stopped');
    expect(two.get<Pipeline>(getPipelineToken()).state).toBe('connecting');
    await two.close();
  });
});
