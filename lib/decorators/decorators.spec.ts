import { describe, expect, it } from 'vitest';
import type { CheckpointContext } from '../engine/model/checkpoint.js';
import type { Lsn } from '../engine/model/lsn.js';
import type { Transaction } from '../engine/model/transaction.js';
import { definePipeline } from '../pipelines/define-pipeline.js';
import { membersOf, sinkPipeline } from '../sinks/sink.metadata.js';
import { Checkpoint } from './checkpoint.decorator.js';
import { OnTransaction } from './on-transaction.decorator.js';
import { ReplicantSink } from './replicant-sink.decorator.js';

interface Shop {
  'public.orders': { id: string; total: string };
}

interface Books {
  'public.books': { isbn: string };
}

const shop = definePipeline<Shop>('shop');

describe('OnTransaction', () => {
  it('accepts every handler that takes a transaction and returns a promise', () => {
    class Sink {
      @OnTransaction()
      async untyped(_tx: Transaction): Promise<void> {}

      @OnTransaction()
      async typed(_tx: Transaction<Shop>): Promise<void> {}

      @OnTransaction(shop)
      async handled(tx: Transaction<Shop>): Promise<string[]> {
        const totals: string[] = [];
        for await (const change of tx.changes) {
          if (change.op === 'insert') totals.push(change.record.total);
        }
        return totals;
      }

      @OnTransaction()
      async ignorant(): Promise<number> {
        return 1;
      }

      @OnTransaction()
      protected async hidden(_tx: Transaction<Shop>): Promise<void> {}
    }
    expect(
      membersOf('transaction', Sink).map(({ property }) => property),
    ).toEqual(['untyped', 'typed', 'handled', 'ignorant', 'hidden']);
  });

  it('rejects at compile time what cannot be a handler', () => {
    class Sink {
      // @ts-expect-error the parameter is no transaction
      @OnTransaction()
      async wrongParameter(_tx: { nope: number }): Promise<void> {}

      // @ts-expect-error a transaction of other tables
      @OnTransaction(shop)
      async otherTables(_tx: Transaction<Books>): Promise<void> {}

      // @ts-expect-error no promise
      @OnTransaction()
      nothing(_tx: Transaction): void {}

      // @ts-expect-error no promise
      @OnTransaction(shop)
      value(_tx: Transaction<Shop>): number {
        return 1;
      }

      // @ts-expect-error nobody passes a second argument
      @OnTransaction()
      async two(_tx: Transaction, _more: string): Promise<void> {}

      // @ts-expect-error not a method
      @OnTransaction()
      readonly property = 1;
    }
    expect(membersOf('transaction', Sink)).toHaveLength(6);
  });

  it('carries the name of the handle', () => {
    class Sink {
      @OnTransaction(shop)
      async apply(_tx: Transaction<Shop>): Promise<void> {}
    }
    expect(membersOf('transaction', Sink)).toEqual([
      { property: 'apply', pipeline: 'shop' },
    ]);
  });

  it('refuses a static method', () => {
    expect(() => {
      class Sink {
        @OnTransaction()
        static async apply(_tx: Transaction): Promise<void> {}
      }
      return Sink;
    }).toThrow(
      'Sink.apply is static; @OnTransaction() belongs on an instance member.',
    );
  });
});

describe('Checkpoint', () => {
  it('accepts a property, also a private one, and a method that reads a position', () => {
    class Sink {
      @Checkpoint()
      readonly table: object = {};

      @Checkpoint()
      protected readonly hidden: object = {};

      @Checkpoint()
      async last(_context: CheckpointContext): Promise<Lsn | null> {
        return null;
      }
    }
    expect(
      membersOf('checkpoint', Sink).map(({ property }) => property),
    ).toEqual(['table', 'hidden', 'last']);
  });

  it('rejects at compile time a method that reads no position', () => {
    class Sink {
      // @ts-expect-error undefined is not "nothing applied yet"
      @Checkpoint()
      async maybe(_context: CheckpointContext): Promise<Lsn | undefined> {
        return undefined;
      }

      // @ts-expect-error no promise
      @Checkpoint()
      now(_context: CheckpointContext): Lsn {
        return 0n;
      }

      // @ts-expect-error the text of a position
      @Checkpoint()
      async text(_context: CheckpointContext): Promise<string> {
        return '0/0';
      }
    }
    expect(membersOf('checkpoint', Sink)).toHaveLength(3);
  });
});

describe('metadata of a class hierarchy', () => {
  @ReplicantSink('shop')
  class Base {
    @OnTransaction()
    async apply(_tx: Transaction): Promise<void> {}
  }

  it('is inherited', () => {
    class Derived extends Base {}
    expect(sinkPipeline(Derived)).toBe('shop');
    expect(membersOf('transaction', Derived)).toEqual([{ property: 'apply' }]);
  });

  it('counts a method that is decorated again once', () => {
    class Derived extends Base {
      @OnTransaction()
      override async apply(_tx: Transaction): Promise<void> {}
    }
    expect(membersOf('transaction', Derived)).toHaveLength(1);
  });

  it('does not reach the base class or a sibling', () => {
    class Derived extends Base {
      @OnTransaction()
      async other(_tx: Transaction): Promise<void> {}
    }
    class Sibling extends Base {}
    expect(
      membersOf('transaction', Derived).map(({ property }) => property),
    ).toEqual(['apply', 'other']);
    expect(membersOf('transaction', Base)).toHaveLength(1);
    expect(membersOf('transaction', Sibling)).toHaveLength(1);
  });

  it('names the pipeline of the short form when none is given', () => {
    @ReplicantSink()
    class Sink {}
    expect(sinkPipeline(Sink)).toBe('default');
    expect(sinkPipeline(class {})).toBeUndefined();
  });
});
