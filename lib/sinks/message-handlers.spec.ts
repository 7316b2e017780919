import { describe, expect, it } from 'vitest';
import { OnMessage } from '../decorators/on-message.decorator.js';
import type { MessageHandler } from '../engine/deliver/sink.js';
import { NoPromiseError } from '../engine/model/answer.js';
import type { Message, MessageContext } from '../engine/model/message.js';
import { createMessageHandler } from './message-handlers.js';
import { markMember } from './sink.metadata.js';
import { SinkDefinitionError } from './sink-definition.error.js';

function create(
  instance: object,
  options = { messages: true },
): MessageHandler | null {
  const { constructor: sinkClass } = instance;
  return createMessageHandler(
    { sinkClass, instance, pipeline: 'orders' },
    options,
  );
}

function message(prefix: string): Message {
  return {
    transactional: false,
    lsn: 7n,
    prefix,
    content: Buffer.from('hi'),
    ordinal: null,
  };
}

const context = { lsn: 7n };

class Log {
  readonly calls: string[] = [];

  @OnMessage({ prefix: 'a' })
  async first({ prefix }: Message, { lsn }: MessageContext): Promise<void> {
    this.calls.push(`first ${prefix} ${lsn}`);
    await new Promise((resolve) => setImmediate(resolve));
    this.calls.push('first is done');
  }

  @OnMessage()
  async every({ prefix }: Message): Promise<void> {
    this.calls.push(`every ${prefix}`);
  }
}

describe('the handler of messages', () => {
  it('calls each method that takes the prefix on the instance, one after the other', async () => {
    const log = new Log();
    const handler = create(log);
    await handler?.handle(message('a'), context);
    await handler?.handle(message('b'), context);
    expect(log.calls).toEqual([
      'first a 7',
      'first is done',
      'every a',
      'every b',
    ]);
  });

  it('takes what a method takes, to the letter', () => {
    class Two {
      @OnMessage({ prefix: 'a' })
      async one(): Promise<void> {}

      @OnMessage({ prefix: '' })
      async two(): Promise<void> {}
    }
    const handler = create(new Two());
    const taken = ['a', '', 'A', 'ab', ' a'].map((prefix) =>
      handler?.takes(prefix),
    );
    expect(taken).toEqual([true, true, false, false, false]);
    expect(create(new Log())?.takes('anything')).toBe(true);
  });

  it('calls the method of a subclass in the place of the one that it overrides', async () => {
    class Derived extends Log {
      override async every(): Promise<void> {
        this.calls.push('derived');
      }
    }
    const log = new Derived();
    await create(log)?.handle(message('b'), context);
    expect(log.calls).toEqual(['derived']);
  });

  it('calls no method after one that failed', async () => {
    const fault = new Error('broken');
    class Broken extends Log {
      override async first(): Promise<void> {
        throw fault;
      }
    }
    const log = new Broken();
    await expect(create(log)?.handle(message('a'), context)).rejects.toBe(
      fault,
    );
    expect(log.calls).toEqual([]);
  });

  it('takes no answer but a promise, of any of the methods', async () => {
    const log = new Log();
    Reflect.set(log, 'every', () => undefined);
    await expect(create(log)?.handle(message('a'), context)).rejects.toThrow(
      NoPromiseError,
    );
    expect(log.calls).toEqual(['first a 7', 'first is done']);
  });

  it('is none for a sink without such a method, where none is asked for', () => {
    expect(create(new (class Plain {})(), { messages: false })).toBeNull();
  });

  it('is refused where messages are asked for and nobody takes them, and the other way round', () => {
    class Plain {}
    expect(() => create(new Plain())).toThrow(SinkDefinitionError);
    expect(() => create(new Plain())).toThrow(
      'Plain has no @OnMessage(), but pipeline "orders" has the option messages; put it on a method (message, context) => Promise<void>, or remove the option.',
    );
    expect(() => create(new Log(), { messages: false })).toThrow(
      SinkDefinitionError,
    );
    expect(() => create(new Log(), { messages: false })).toThrow(
      'Log.first has @OnMessage(), but pipeline "orders" does not ask for messages; set its option messages to true, or remove the decorator.',
    );
  });

  it('calls a method that takes several prefixes once for each message', async () => {
    const calls: string[] = [];
    class Some {
      @OnMessage({ prefix: 'a' })
      @OnMessage({ prefix: 'b' })
      async some({ prefix }: Message): Promise<void> {
        calls.push(prefix);
      }
    }
    const handler = create(new Some());
    expect(handler?.takes('c')).toBe(false);
    await handler?.handle(message('a'), context);
    await handler?.handle(message('b'), context);
    expect(calls).toEqual(['a', 'b']);
  });

  it.each([
    ['a prefix', [{ prefix: 'a' }, { prefix: 'b' }, { prefix: 'a' }]],
    ['a prefix beside all', [{ prefix: 'a' }, {}]],
    ['all beside a prefix', [{}, { prefix: '' }]],
    ['all', [{}, {}]],
  ])(
    'is refused on a method that would be called twice: %s',
    (_, decorations) => {
      class Twice {
        async both(_message: Message): Promise<void> {}
      }
      for (const options of decorations)
        OnMessage(options)(Twice.prototype, 'both', {});
      expect(() => create(new Twice())).toThrow(
        'Twice.both has @OnMessage() more than once for the same messages, and would be called twice; give it each prefix once, or none to take all.',
      );
    },
  );

  it.each([[{ prefix: 1 }], [{ prefx: 'a' }], ['a'], [null]])(
    'is refused with %o, which would take the messages of every prefix',
    (settings) => {
      class Wrong {
        async take(): Promise<void> {}
      }
      markMember('message', Wrong.prototype, { property: 'take', settings });
      expect(() => create(new Wrong())).toThrow(
        'Wrong.take has @OnMessage() with something else than { prefix: text }; give the prefix of the messages so, or nothing to take all.',
      );
    },
  );

  it('is refused where a decorated member is no method any more', () => {
    const log = new Log();
    Object.defineProperty(log, 'every', { value: 1 });
    expect(() => create(log)).toThrow(
      'Log.every has @OnMessage() but is not a method.',
    );
  });
});
