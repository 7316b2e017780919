import { once } from 'node:events';
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Controller, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  ClientProxyFactory,
  EventPattern,
  type MicroserviceOptions,
  Payload,
  Transport,
} from '@nestjs/microservices';
import { formatLsn } from 'nestjs-replicant';
import { describe, expect, it, onTestFinished } from 'vitest';
import { codeBlocks } from '../tools/markdown.mjs';
import { OrderEvents } from './guide/broker.sink.js';
import { ChangeFile, readChanges } from './guide/file.sink.js';
import { OrderWebhook } from './guide/http.sink.js';
import { Mailer, OrderMails } from './guide/mail.sink.js';
import { Cache, CacheInvalidation } from './guide/message.sink.js';
import { bootWithStore } from './support/boot-with-store.js';
import { freePort } from './support/free-port.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

it.each(['broker', 'file', 'http', 'mail', 'message'])(
  'docs/delivery.md shows the sink of %s as it is tested here',
  async (name) => {
    const sink = await readFile(`test/guide/${name}.sink.ts`, 'utf8');
    const guide = await readFile('docs/delivery.md', 'utf8');
    expect(codeBlocks(guide, 'ts').map(({ code }) => code)).toContain(sink);
  },
);

describe('the sinks of the guide to delivery', () => {
  const suite = useServer();

  async function ordersIn(columns: string): Promise<TestDatabase> {
    const source = await suite.database();
    await source.query(
      `create table orders(id int primary key, ${columns}); create publication p for table orders`,
    );
    return source;
  }

  it('broker: awaits each event, with the key of its row and an id of its own', async () => {
    const received: { key: string; headers: object; value: string }[] = [];
    @Controller()
    class Consumer {
      @EventPattern('orders')
      take(@Payload() event: (typeof received)[number]): void {
        received.push(event);
      }
    }
    const options = { host: '127.0.0.1', port: await freePort() };
    await listen(Consumer, options);
    const client = ClientProxyFactory.create({
      transport: Transport.TCP,
      options,
    });
    onTestFinished(async () => {
      await client.close();
    });
    const source = await ordersIn('total int');
    const pipeline = await bootWithStore(source, [
      OrderEvents,
      { provide: 'BROKER', useValue: client },
    ]);
    const lsns: string[] = [];
    pipeline.on('delivered', ({ commitLsn }) =>
      lsns.push(formatLsn(commitLsn)),
    );
    await source.query(
      'begin; insert into orders values (1, 10), (2, 20); update orders set total = 11 where id = 1; commit',
    );
    await source.query('delete from orders where id = 2');
    await waitFor(() => received.length === 4 && lsns.length === 2);
    expect(received).toEqual(
      [
        ['1', `${lsns[0]}-0`, { op: 'insert', row: { id: 1, total: 10 } }],
        ['2', `${lsns[0]}-1`, { op: 'insert', row: { id: 2, total: 20 } }],
        ['1', `${lsns[0]}-2`, { op: 'update', row: { id: 1, total: 11 } }],
        ['2', `${lsns[1]}-0`, { op: 'delete', row: { id: 2 } }],
      ].map(([key, id, value]) => ({
        key,
        headers: { 'event-id': id },
        value: JSON.stringify(value),
      })),
    );
  });

  it('HTTP: tries again under the same key, and halts with the class of what is final', async () => {
    const keys: unknown[] = [];
    const answers = [503, 200, 422, 422];
    const url = await serve(({ headers }) => {
      keys.push(headers['idempotency-key']);
      return answers.shift() ?? 200;
    });
    const source = await ordersIn('total int');
    const pipeline = await bootWithStore(
      source,
      [{ provide: OrderWebhook, useFactory: () => new OrderWebhook(url) }],
      { sinkRetry: { maxRetries: 1, backoffMs: 10 } },
    );
    await source.query('insert into orders values (1, 10)');
    await waitFor(() => keys.length === 2);
    expect(keys[0]).toBe(keys[1]);
    await source.query('insert into orders values (2, 20)');
    const halt = await waitFor(() => pipeline.halt);
    expect(halt).toMatchObject({ code: 'sink_failed' });
    expect(halt.detail).toContain('ReceiverRefused');
    expect(keys[2]).not.toBe(keys[1]);
    expect(keys[3]).toBe(keys[2]);
    pipeline.start();
    await pipeline.caughtUp();
    expect(keys).toHaveLength(5);
    expect(keys[4]).toBe(keys[2]);
  });

  it('files: a reader leaves out what was cut off, and what came again', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'replicant-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = path.join(folder, 'changes.jsonl');
    const source = await ordersIn('note text');
    const pipeline = await bootWithStore(
      source,
      [{ provide: ChangeFile, useFactory: () => new ChangeFile(file) }],
      // The second transaction is larger, and is read while it arrives.
      { maxInflightBytes: 10_000 },
    );
    const notes = async (): Promise<unknown[]> => {
      const found: unknown[] = [];
      for await (const lines of readChanges(file))
        found.push(lines.map((line) => /"note":"([^"]*)/.exec(line)?.[1]));
      return found;
    };
    await source.query("insert into orders values (1, 'a'), (2, 'b')");
    await pipeline.caughtUp();
    await source.query(
      `insert into orders select n, 'many' from generate_series(3, 1000) as n`,
    );
    await pipeline.caughtUp();
    const written = await readFile(file, 'utf8');
    const expected = [['a', 'b'], Array.from({ length: 998 }, () => 'many')];
    expect(await notes()).toEqual(expected);
    const repeated = written.slice(written.lastIndexOf('{"begin"') - 1);
    for (const cut of [1, 12, repeated.length - 2, repeated.length, 5_000]) {
      await appendFile(file, repeated.slice(0, cut));
      expect(await notes(), `cut after ${cut}`).toEqual(expected);
    }
    await source.query("insert into orders values (0, 'c')");
    await pipeline.caughtUp();
    expect(await notes()).toEqual([...expected, ['c']]);
  });

  it('handlers by table: one mail for each new order', async () => {
    const mails: object[] = [];
    class Outgoing extends Mailer {
      async send(mail: object): Promise<void> {
        mails.push(mail);
      }
    }
    const source = await ordersIn('email text');
    const pipeline = await bootWithStore(source, [
      OrderMails,
      { provide: Mailer, useClass: Outgoing },
    ]);
    let at = '';
    pipeline.on('delivered', ({ commitLsn }) => (at = formatLsn(commitLsn)));
    await source.query(
      "begin; insert into orders values (1, 'a@example'); update orders set email = 'b@example'; insert into orders values (2, 'c@example'); commit",
    );
    await pipeline.caughtUp();
    expect(mails).toEqual([
      {
        messageId: `<${at}-0@shop.example>`,
        to: 'a@example',
        text: 'We have your order 1.',
      },
      {
        messageId: `<${at}-2@shop.example>`,
        to: 'c@example',
        text: 'We have your order 2.',
      },
    ]);
  });

  it('messages: those inside transactions and those outside, by their prefix', async () => {
    const cleared: string[] = [];
    class Names extends Cache {
      async clear(name: string): Promise<void> {
        cleared.push(name);
      }
    }
    const source = await ordersIn('total int');
    const pipeline = await bootWithStore(
      source,
      [CacheInvalidation, { provide: Cache, useClass: Names }],
      { messages: true },
    );
    await source.query(
      `select pg_logical_emit_message(false, 'cache', 'alone'), pg_logical_emit_message(false, 'other', 'alone')`,
    );
    await source.query(
      `begin; select pg_logical_emit_message(true, 'cache', 'within'), pg_logical_emit_message(true, 'other', 'within');
       insert into orders values (1, 10); commit`,
    );
    await pipeline.caughtUp();
    expect(cleared).toEqual(['alone', 'orders', 'within']);
  });

  async function listen(
    controller: Type,
    options: { host: string; port: number },
  ): Promise<void> {
    class ConsumerModule {}
    const app = await NestFactory.createMicroservice<MicroserviceOptions>(
      { module: ConsumerModule, controllers: [controller] },
      { transport: Transport.TCP, options, logger: false },
    );
    await app.listen();
    onTestFinished(() => app.close());
  }

  /** @returns where requests get the status that the function gives */
  async function serve(
    status: (request: IncomingMessage) => number,
  ): Promise<URL> {
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(status(request)).end();
    });
    const port = await freePort();
    await once(server.listen(port, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      server.close();
    });
    return new URL(`http://127.0.0.1:${port}/orders`);
  }
});
