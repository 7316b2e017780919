import { HealthIndicatorService } from '@nestjs/terminus';
import { ReplicantRegistry } from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConnectionFault } from '../lib/engine/model/connection-fault.js';
import { HaltError } from '../lib/engine/model/halt.js';
import type { Pipeline } from '../lib/engine/pipeline.js';
import type { PipelineEvents } from '../lib/engine/telemetry/pipeline-events.js';
import { capture } from './support/capture.js';
import { haltedFor } from './support/halted.js';
import { libraryCapture } from './support/library-capture.js';
import { emit, emitInTransaction, taking } from './support/messages.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

const SECRET = 'hunter2_planted';

/** An error as careless drivers and sinks make them: every part that could be printed holds the secret. */
class CarelessError extends Error {
  override readonly name = `Error ${SECRET}`;
  readonly code = SECRET;
  readonly detail = `Key (email)=(${SECRET}) already exists.`;
  readonly parameters = [SECRET];

  constructor() {
    super(`could not write ${SECRET}`, { cause: new Error(SECRET) });
  }

  get [Symbol.toStringTag](): string {
    return SECRET;
  }

  [inspect.custom](): string {
    return SECRET;
  }

  toJSON(): unknown {
    return { email: SECRET };
  }
}

/** Every way in which a value ends up in a log. */
function printed(value: unknown): string {
  const parts = [
    inspect(value, { depth: 20, showHidden: true, getters: true }),
    inspect(value),
    String(value),
    JSON.stringify(value, bigintAsText) ?? '',
  ];
  if (value instanceof Error) {
    parts.push(value.message, value.stack ?? '', printed(value.cause));
    parts.push(JSON.stringify(value, Object.getOwnPropertyNames(value)));
  }
  return parts.join('\n');
}

function bigintAsText(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}

const EVENTS: readonly (keyof PipelineEvents)[] = [
  'state',
  'halt',
  'reconnect',
  'delivered',
  'batch',
  'message',
  'retry',
  'skipped',
  'schemaChange',
  'warning',
];

/** Collects all that a pipeline tells. */
function everythingSaid(pipeline: Pipeline): unknown[] {
  const said: unknown[] = [];
  const keep = (event: unknown): void => {
    said.push(event, pipeline.status(), pipeline.reason);
  };
  for (const event of EVENTS) pipeline.on(event, keep);
  const warned = (warning: Error): void => {
    said.push(warning);
  };
  process.on('warning', warned);
  onTestFinished(() => {
    process.off('warning', warned);
  });
  return said;
}

/** What the probes answer. */
function healthOf(pipeline: Pipeline): unknown {
  const indicator = new ReplicantHealthIndicator(
    new ReplicantRegistry([pipeline]),
    new HealthIndicatorService(),
  );
  const answers = [
    indicator.startup(),
    indicator.liveness(),
    indicator.readiness(),
  ];
  if (pipeline.status().slot === null) throw new Error('The slot is missing.');
  return answers;
}

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error('It was expected to fail.');
}

function expectNoSecret(said: readonly unknown[]): void {
  expect(said.length).toBeGreaterThan(0);
  for (const one of said) expect(printed(one)).not.toContain(SECRET);
}

describe('no surface prints a secret', () => {
  it('of a row or of the error of a sink, which stays reachable', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const failure = new CarelessError();
    const { pipeline } = capture(source, {
      target,
      async apply() {
        throw failure;
      },
    });
    const said = everythingSaid(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    const waiting = errorOf(pipeline.caughtUp(0xffff_ffff_ffffn));
    await source.query('insert into t values (1, $1)', [SECRET]);
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.sinkError()).toBe(failure);
    await pipeline.checkSlot();
    const errors = [
      await waiting,
      await errorOf(pipeline.whenStreaming()),
      healthOf(pipeline),
    ];
    expect(errors[0]).toBeInstanceOf(HaltError);
    expectNoSecret([halt, ...errors, ...said]);
  });

  it('of an error that a database returned, though it quotes the row', async () => {
    const { source, target } = await sourceAndTarget(suite);
    await target.query('create table users(email text primary key)');
    await target.query('insert into users values ($1)', [SECRET]);
    const { pipeline } = capture(source, {
      target,
      async apply() {
        await target.query('insert into users values ($1)', [SECRET]);
      },
    });
    const said = everythingSaid(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1, $1)', [SECRET]);
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(inspect(halt.sinkError())).toContain(SECRET);
    expect(halt.detail).toContain('23505');
    expectNoSecret([halt, new HaltError(halt), ...said]);
  });

  it('of a transaction that is read while it arrives, or of an option around that fails', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, {
      target,
      maxInflightBytes: 64 * 1024,
      async around(_, next) {
        await next();
        throw new CarelessError();
      },
      async apply({ changes }) {
        if (!(Symbol.asyncIterator in changes)) return;
        for await (const _ of changes);
        for await (const _ of changes);
      },
    });
    const said = everythingSaid(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1, $1)', [SECRET]);
    await waitFor(() => applied.length === 1);
    await source.query('insert into t values (2, repeat($1, 10000))', [SECRET]);
    const halt = await haltedFor(pipeline, 'sink_failed');
    expectNoSecret([halt, new HaltError(halt), halt.sinkError(), ...said]);
  });

  it('of a server that refuses a session', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, user: SECRET, password: 'wrong' },
    });
    const error: unknown = await pipeline
      .dropSlot()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConnectionFault);
    expect(String(error)).toContain('server error 28');
    expectNoSecret([error]);
  });

  it('of a batch that the sink refuses as a whole and one by one, until it is passed over', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      batchDelivery: { maxTransactions: 2, maxDelayMs: 500 },
      messages: true,
      sinkRetry: { maxRetries: 1, backoffMs: 1 },
      sink: {
        message: { takes: () => true, handle: async () => {} },
        async batch() {
          throw new CarelessError();
        },
      },
    });
    const said = everythingSaid(pipeline);
    const told: string[] = [];
    for (const event of EVENTS) pipeline.on(event, () => told.push(event));
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1, $1)', [SECRET]);
    await emitInTransaction(source, SECRET, SECRET);
    const halt = await haltedFor(pipeline, 'sink_failed');
    const { lsn } = halt;
    if (lsn === null) throw new Error('The halt names no transaction.');
    const refused = await errorOf(pipeline.skipTransaction(lsn + 1n));
    const skipping = pipeline.skipTransaction(lsn);
    const error = await errorOf(skipping.then(() => pipeline.caughtUp()));
    await waitFor(() => told.includes('skipped'));
    expect(told).toContain('retry');
    expectNoSecret([halt, refused, error, pipeline, ...said]);
  });

  it('of a message that the sink takes, or refuses again and again', async () => {
    let broken = false;
    const { source, pipeline } = taking(await sourceAndTarget(suite), {
      sinkRetry: { maxRetries: 1, backoffMs: 1 },
      async work() {
        if (broken) throw new CarelessError();
      },
    });
    const said = everythingSaid(pipeline);
    const told: string[] = [];
    for (const event of EVENTS) pipeline.on(event, () => told.push(event));
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.caughtUp(await emit(source, SECRET, SECRET));
    expect(told).toContain('message');
    broken = true;
    await emit(source, SECRET, SECRET);
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.toJSON()).toMatchObject({ delivery: 'message' });
    expect(told).toContain('retry');
    expectNoSecret([halt, new HaltError(halt), pipeline, ...said]);
  });

  it('of parsers that throw', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      types: {
        getTypeParser: () => () => {
          throw new CarelessError();
        },
      },
    });
    const said = everythingSaid(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1, $1)', [SECRET]);
    const halt = await haltedFor(pipeline, 'decode_failure');
    expectNoSecret([halt, new HaltError(halt), ...said]);
  });

  it('of a checkpoint that cannot be read or stored', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      checkpoint: {
        kind: 'reader',
        async read() {
          throw new CarelessError();
        },
      },
    });
    const said = everythingSaid(pipeline);
    pipeline.start();
    await waitFor(() => pipeline.status().attempt >= 2);
    expectNoSecret([pipeline.status(), ...said]);
  });

  it.each([
    [
      'a wrong password',
      ({ connection }: TestDatabase) => ({ ...connection, password: SECRET }),
    ],
    [
      'a function that fails',
      () => () => {
        throw new CarelessError();
      },
    ],
    [
      'a server that nobody knows',
      () => `postgres://${SECRET}:${SECRET}@127.0.0.1:1/${SECRET}`,
    ],
  ])('of the checkpoint of the library: %s', async (_, connectionOf) => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = libraryCapture(source, target, {
      connection: connectionOf(target),
      maxRetries: 1,
    });
    const said = everythingSaid(pipeline);
    pipeline.start();
    const halt = await haltedFor(pipeline, 'checkpoint_store/unavailable');
    expectNoSecret([halt, new HaltError(halt), pipeline, ...said]);
  });

  it('of a row whose checkpoint the library cannot write', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = libraryCapture(source, target, { maxRetries: 1 });
    const said = everythingSaid(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    await target.query(`
      create function fail() returns trigger language plpgsql as $$ begin raise '${SECRET}'; end $$;
      create trigger fail before insert or update on replicant_checkpoints for each row execute function fail()`);
    await source.query('insert into t values (1, $1)', [SECRET]);
    const halt = await haltedFor(pipeline, 'checkpoint_store_failed');
    expect(halt.detail).toContain('P0001');
    expectNoSecret([halt, new HaltError(halt), ...said]);
  });

  it.each([
    [
      'a wrong password',
      (url: URL) => {
        url.password = SECRET;
        return url.href;
      },
    ],
    [
      'a function that returns a connection string that is none',
      () => () => `postgres://user:${SECRET}@host:port/${SECRET}`,
    ],
    [
      'a function that fails',
      () => () => {
        throw new CarelessError();
      },
    ],
    [
      'a host that nobody knows',
      () => `postgres://user:${SECRET}@${SECRET.replace('_', '-')}.invalid/db`,
    ],
  ])('of %s', async (_, connection) => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      connection: connection(new URL(source.url)),
    });
    const said = everythingSaid(pipeline);
    pipeline.start();
    const waiting = errorOf(pipeline.whenStreaming());
    await waitFor(
      () => pipeline.halt !== null || pipeline.status().attempt >= 1,
    );
    const asked = await errorOf(pipeline.caughtUp());
    await pipeline.checkSlot();
    const health = healthOf(pipeline);
    await pipeline.stop();
    const dropped = await errorOf(pipeline.dropSlot());
    expectNoSecret([
      asked,
      dropped,
      health,
      await waiting,
      pipeline.halt,
      pipeline.status(),
      ...said,
    ]);
  });

  it('of options that cannot work', async () => {
    const { source, target } = await sourceAndTarget(suite);
    for (const options of [
      { slotName: `Ä ${SECRET}` },
      { publication: [`\0${SECRET}`] },
      { [`${SECRET} `]: 1 },
      { connection: `postgres://user:${SECRET}@host:port/${SECRET}` },
      {
        checkpointStore: {
          connection: `postgres://user:${SECRET}@host:port/${SECRET}`,
        },
      },
      {
        checkpointStore: {
          connection: { ...target.connection },
          table: `\0${SECRET}`,
        },
      },
    ]) {
      const build = async (): Promise<unknown> =>
        capture(source, { target, ...options });
      expectNoSecret([await errorOf(build())]);
    }
  });
});

it('planted secrets would be seen', () => {
  const failure = new CarelessError();
  for (const leaky of [
    failure,
    new Error('x', { cause: failure }),
    { reason: failure.message },
    present(failure.parameters[0]),
  ])
    expect(printed(leaky)).toContain(SECRET);
});
