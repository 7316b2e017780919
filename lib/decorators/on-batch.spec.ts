import { describe, expect, it } from 'vitest';
import type { Transaction } from '../engine/model/transaction.js';
import { definePipeline } from '../pipelines/define-pipeline.js';
import { membersOf } from '../sinks/sink.metadata.js';
import { OnBatch } from './on-batch.decorator.js';

interface Shop {
  'public.orders': { id: string; total: string };
}

interface Books {
  'public.books': { isbn: string };
}

const shop = definePipeline<Shop>('shop');

describe('OnBatch', () => {
  it('accepts every handler that takes transactions and returns a promise', () => {
    class Sink {
      @OnBatch()
      async untyped(_batch: readonly Transaction[]): Promise<void> {}

      @OnBatch()
      async typed(_batch: readonly Transaction<Shop>[]): Promise<void> {}

      @OnBatch(shop)
      async handled(batch: readonly Transaction<Shop>[]): Promise<string[]> {
        const totals: string[] = [];
        for (const { changes } of batch) {
          for await (const change of changes) {
            if (change.op === 'insert') totals.push(change.record.total);
          }
        }
        return totals;
      }

      @OnBatch()
      protected async ignorant(): Promise<void> {}
    }
    expect(membersOf('batch', Sink)).toEqual([
      { property: 'untyped' },
      { property: 'typed' },
      { property: 'handled', pipeline: 'shop' },
      { property: 'ignorant' },
    ]);
  });

  it('rejects at compile time what cannot be a handler', () => {
    class Sink {
      // @ts-expect-error one transaction
      @OnBatch()
      async single(_transaction: Transaction): Promise<void> {}

      // @ts-expect-error the batch is not for the handler to change
      @OnBatch()
      async changing(_batch: Transaction[]): Promise<void> {}

      // @ts-expect-error transactions of other tables
      @OnBatch(shop)
      async otherTables(_batch: readonly Transaction<Books>[]): Promise<void> {}

      // @ts-expect-error no promise
      @OnBatch()
      nothing(_batch: readonly Transaction[]): void {}

      // @ts-expect-error no promise
      @OnBatch(shop)
      value(_batch: readonly Transaction<Shop>[]): number {
        return 1;
      }
    }
    expect(membersOf('batch', Sink)).toHaveLength(5);
  });

  it('refuses a static method', () => {
    expect(() => {
      class Sink {
        @OnBatch()
        static async apply(): Promise<void> {}
      }
      return Sink;
    }).toThrow(
      'Sink.apply is static; @OnBatch() belongs on an instance member.',
    );
  });
});
