import { inspect } from 'node:util';
import type { LoggerService } from '@nestjs/common';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  OnChange,
  OnMessage,
  ReplicantModule,
  ReplicantRegistry,
  ReplicantSink,
  SinkDefinitionError,
  type Message,
  type MessageContext,
  type Pipeline,
  type PipelineEvents,
  type PipelineOptions,
} from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { describe, expect, it, onTestFinished } from 'vitest';
import { haltedFor } from './support/halted.js';
import { IdleSink } from './support/idle-sink.js';
import { emit, emitInTransaction } from './support/messages.js';
import {
  sourceAndTarget,
  type SourceAndTarget,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

const EVENTS = [
  'state',
  'halt',
  'reconnect',
  'delivered',
  'message',
  'retry',
  'warning',
] as const satisfies readonly (keyof PipelineEvents)[];

class Relay extends IdleSink {
  readonly calls: string[] = [];

  @OnMessage({ prefix: 'outbox' })
  async outbox({ prefix }: Message, { lsn }: MessageContext): Promise<void> {
    this.calls.push(`outbox ${prefix} ${typeof lsn}`);
    await new Promise((resolve) => setImmediate(resolve));
    this.calls.push('outbox is done');
  }

  @OnMessage()
  async every({ prefix, content }: Message): Promise<void> {
    this.calls.push(`every ${prefix} ${content.toString()}`);
  }

  @OnMessage({ prefix: 'audit' })
  async audit(): Promise<void> {
    this.calls.push('audit');
  }
}

interface Booted {
  readonly app: TestingModule;
  readonly pipeline: Pipeline;
  /** What was logged. */
  readonly lines: unknown[];
}

async function boot(
  { source }: SourceAndTarget,
  sink: object,
  options: Partial<PipelineOptions> = { messages: true },
): Promise<Booted> {
  const lines: unknown[] = [];
  const keep = (...line: unknown[]): void => void lines.push(line);
  const logger: LoggerService = { log: keep, warn: keep, error: keep };
  const app = await Test.createTestingModule({
    imports: [
      TerminusModule.forRoot({ logger: false }),
      ReplicantModule.forRoot({
        connection: { ...source.connection },
        slotName: `slot_${source.name}`,
        publication: 'p',
        goForwardOnly: true,
        startup: 'wait',
        ...options,
      }),
    ],
    providers: [{ provide: 'sink', useValue: sink }, ReplicantHealthIndicator],
  })
    .setLogger(logger)
    .compile();
  onTestFinished(() => app.close());
  await app.init();
  return { app, pipeline: app.get(ReplicantRegistry).get(), lines };
}

describe('the methods with @OnMessage()', () => {
  it('are called for the prefixes that they take, each after the one before', async () => {
    const databases = await sourceAndTarget(suite);
    const relay = new Relay(databases.target);
    const { pipeline } = await boot(databases, relay);
    await emit(databases.source, 'outbox', '1');
    await emit(databases.source, 'outbox2', '2');
    await pipeline.caughtUp(await emit(databases.source, 'audit', '3'));
    expect(relay.calls).toEqual([
      'outbox outbox bigint',
      'outbox is done',
      'every outbox 1',
      'every outbox2 2',
      'every audit 3',
      'audit',
    ]);
  });

  it('take messages inside transactions too, in their place, on a sink that takes changes by table', async () => {
    @ReplicantSink()
    class Relaying {
      readonly calls: string[] = [];

      @OnChange('public.t', { on: ['insert'] })
      async row({ ordinal }: { ordinal: number }): Promise<void> {
        if (this.calls.length < 10) this.calls.push(`row ${ordinal}`);
      }

      @OnMessage({ prefix: 'outbox' })
      async outbox(message: Message, { lsn }: MessageContext): Promise<void> {
        const { transactional, ordinal, content } = message;
        this.calls.push(
          `${content.toString()} ${transactional} ${ordinal} ${lsn === message.lsn}`,
        );
      }
    }
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const sink = new Relaying();
    const { pipeline } = await boot(databases, sink, {
      messages: true,
      checkpointStore: { connection: { ...target.connection } },
      maxInflightBytes: 64 * 1024,
    });
    const message = (content: string): string =>
      `select pg_logical_emit_message(true, 'outbox', '${content}')`;
    await source.query(message('alone'));
    await source.query(
      `begin; ${message('first')}; insert into t values (1); ${message('second')};
       select pg_logical_emit_message(true, 'other', 'x'); ${message('last')}; commit`,
    );
    await pipeline.caughtUp();
    expect(sink.calls).toEqual([
      'alone true 0 true',
      'first true 0 true',
      'row 1',
      'second true 2 true',
      'last true 4 true',
    ]);
    sink.calls.length = 0;
    await source.query(
      `begin; insert into t values (2); ${message('before')};
       insert into t select g, repeat('x', 100) from generate_series(3, 3000) g; ${message('behind')}; commit`,
    );
    await pipeline.caughtUp();
    expect(sink.calls.slice(0, 3)).toEqual([
      'row 0',
      'before true 1 true',
      'row 2',
    ]);
    expect(sink.calls.at(-1)).toBe('behind true 3000 true');
  });

  it('have to return a promise, each of them', async () => {
    class Forgetful extends Relay {
      override async every(message: Message): Promise<void> {
        await super.every(message);
      }
    }
    const databases = await sourceAndTarget(suite);
    const relay = new Forgetful(databases.target);
    Reflect.set(relay, 'every', () => undefined);
    const { pipeline } = await boot(databases, relay);
    const lsn = await emit(databases.source, 'outbox');
    const halt = await haltedFor(pipeline, 'sink_failed/no_promise');
    expect(halt.lsn).toBe(lsn);
    expect(halt.detail).toBe('Forgetful.every returned no promise');
    expect(relay.calls).toEqual(['outbox outbox bigint', 'outbox is done']);
  });

  it('and the option need each other, or the application does not start', async () => {
    const databases = await sourceAndTarget(suite);
    const { target } = databases;
    await expect(boot(databases, new IdleSink(target))).rejects.toThrow(
      SinkDefinitionError,
    );
    await expect(boot(databases, new Relay(target), {})).rejects.toThrow(
      'Relay.outbox has @OnMessage()',
    );
  });
});

it('prefix and content of messages show nowhere (hostile bytes too)', async () => {
  const SECRET = 'planted';
  const hostile = Buffer.concat([
    Buffer.from([0, 0xc3, 0x28, 0xff, 0]),
    Buffer.from(SECRET),
    Buffer.from([0, 0xf0, 0x90]),
  ]);
  const bytes = [...Buffer.from(SECRET)];
  const hex = bytes.map((byte) => byte.toString(16));
  class Leaky extends Relay {
    override async every({ prefix, content }: Message): Promise<void> {
      if (this.calls.length === 0) {
        this.calls.push('taken');
        return;
      }
      throw Object.assign(new Error(`${prefix} ${content.toString()}`), {
        prefix,
        content,
        code: prefix,
      });
    }
  }
  const databases = await sourceAndTarget(suite);
  const { app, pipeline, lines } = await boot(
    databases,
    new Leaky(databases.target),
  );
  const events: unknown[] = [];
  for (const name of EVENTS) pipeline.on(name, (event) => events.push(event));
  const prefix = `${SECRET}\u001b[31m`;
  await emitInTransaction(databases.source, prefix, hostile);
  await pipeline.caughtUp(await emit(databases.source, prefix, hostile));
  await emit(databases.source, prefix, hostile);
  const halt = await haltedFor(pipeline, 'sink_failed');
  await waitFor(() => lines.length > 0);
  const failure: unknown = await pipeline
    .whenStreaming()
    .catch((error: unknown) => error);
  const health: unknown = await app
    .get(HealthCheckService)
    .check([() => app.get(ReplicantHealthIndicator).readiness()])
    .catch((error: unknown) => error);
  const all = [halt, failure, health, events, lines, pipeline.status()];
  const texts = [
    ...all.map((one) => inspect(one, { depth: 20, showHidden: true })),
    JSON.stringify(events.map((event) => inspect(event))),
    JSON.stringify([halt, failure, health, lines, pipeline.status()]),
    String(failure),
    failure instanceof Error ? String(failure.stack) : '',
  ];
  expect(events.length).toBeGreaterThanOrEqual(3);
  for (const hidden of [
    SECRET,
    bytes.join(', '),
    bytes.join(','),
    hex.join(' '),
    hex.join(''),
    Buffer.from(SECRET).toString('base64'),
  ])
    expect(texts.join('\n')).not.toContain(hidden);
});
