import { describe, expect, it } from 'vitest';
import type { Message, MessageContext } from '../engine/model/message.js';
import { membersOf } from '../sinks/sink.metadata.js';
import { OnMessage } from './on-message.decorator.js';

const SYMBOL = Symbol('handler');

describe('OnMessage', () => {
  it('stands on any number of methods, in the order of the class', () => {
    class Sink {
      @OnMessage({ prefix: 'outbox' })
      async outbox(
        _message: Message,
        _context: MessageContext,
      ): Promise<void> {}

      @OnMessage({})
      protected async every(_message: Message): Promise<number> {
        return 1;
      }

      @OnMessage({ prefix: '' })
      async [SYMBOL](): Promise<void> {}

      @OnMessage()
      async last(): Promise<void> {}
    }
    expect(membersOf('message', Sink)).toEqual([
      { property: 'outbox', settings: { prefix: 'outbox' } },
      { property: 'every', settings: {} },
      { property: SYMBOL, settings: { prefix: '' } },
      { property: 'last', settings: {} },
    ]);
  });

  it('is rejected at compile time on what returns no promise or takes something else', () => {
    class Sink {
      // @ts-expect-error no promise
      @OnMessage()
      nothing(_message: Message): void {}

      // @ts-expect-error the content alone
      @OnMessage()
      async content(_content: Buffer): Promise<void> {}

      // @ts-expect-error a prefix is text
      @OnMessage({ prefix: 1 })
      async number(_message: Message): Promise<void> {}

      // @ts-expect-error not a method
      @OnMessage()
      readonly property = 1;
    }
    expect(membersOf('message', Sink)).toHaveLength(4);
  });

  it('is inherited, and of an overridden method decorated anew the last word counts', () => {
    class Base {
      @OnMessage({ prefix: 'old' })
      async one(): Promise<void> {}

      @OnMessage()
      async two(): Promise<void> {}
    }
    class Derived extends Base {
      @OnMessage({ prefix: 'new' })
      override async one(): Promise<void> {}

      override async two(): Promise<void> {}
    }
    expect(membersOf('message', Derived)).toEqual([
      { property: 'one', settings: { prefix: 'new' } },
      { property: 'two', settings: {} },
    ]);
    expect(membersOf('message', Base)).toEqual([
      { property: 'one', settings: { prefix: 'old' } },
      { property: 'two', settings: {} },
    ]);
  });

  it('is refused on a static method', () => {
    expect(() => {
      class Sink {
        @OnMessage()
        static async take(): Promise<void> {}
      }
      return Sink;
    }).toThrow(
      'Sink.take is static; @OnMessage() belongs on an instance member.',
    );
  });
});
