import { describe, expect, it } from 'vitest';
import type {
  Change,
  Delete,
  Insert,
  Truncate,
  Update,
} from '../engine/model/change.js';
import { definePipeline } from '../pipelines/define-pipeline.js';
import type { ChangeContext } from '../sinks/change-handlers.js';
import { membersOf } from '../sinks/sink.metadata.js';
import { OnChange } from './on-change.decorator.js';

interface Order {
  id: string;
  total: string;
}

interface Shop {
  'public.orders': Order;
  'public.customers': { name: string };
}

const shop = definePipeline<Shop>('shop');

describe('OnChange', () => {
  it('accepts every handler that takes the changes of its table and returns a promise', () => {
    class Sink {
      @OnChange(shop, 'public.orders', { on: ['insert'] })
      async inserted(
        { record }: Insert<'public.orders', Order>,
        { transaction }: ChangeContext,
      ): Promise<string> {
        return `${record.total} ${transaction.commitLsn}`;
      }

      @OnChange(shop, 'public.orders', { on: ['update', 'delete'] })
      async other(
        change: Update<'public.orders', Order> | Delete<'public.orders', Order>,
      ): Promise<string | undefined> {
        return change.old?.record.id;
      }

      @OnChange(shop, 'public.orders')
      @OnChange(shop, 'public.customers')
      async every(_change: Change<Shop>): Promise<void> {}

      @OnChange(shop, 'public.customers', { on: ['truncate'] })
      protected async emptied({
        together,
      }: Truncate<'public.customers'>): Promise<number> {
        return together.length;
      }

      @OnChange('public.orders', { on: ['insert'] })
      async loose({ record }: Insert): Promise<unknown> {
        return record['total'];
      }

      @OnChange('public.orders', { on: ['insert', 'update'] })
      async typed(
        change: Insert<'public.orders', Order> | Update<'public.orders', Order>,
      ): Promise<string | undefined> {
        return change.record.total;
      }

      @OnChange('public.orders')
      async all(
        _change: Change<Shop>,
        _context: ChangeContext,
      ): Promise<void> {}

      @OnChange('public.orders', {})
      async untyped(_change: Change): Promise<void> {}

      @OnChange('public.orders')
      async ignorant(): Promise<void> {}
    }
    const of = (
      property: string,
      relation: string,
      on?: readonly string[],
    ): object => ({
      property,
      settings: { relation, ...(on && { on }) },
    });
    expect(membersOf('change', Sink)).toEqual([
      { ...of('inserted', 'public.orders', ['insert']), pipeline: 'shop' },
      {
        ...of('other', 'public.orders', ['update', 'delete']),
        pipeline: 'shop',
      },
      { ...of('every', 'public.customers'), pipeline: 'shop' },
      { ...of('every', 'public.orders'), pipeline: 'shop' },
      { ...of('emptied', 'public.customers', ['truncate']), pipeline: 'shop' },
      of('loose', 'public.orders', ['insert']),
      of('typed', 'public.orders', ['insert', 'update']),
      of('all', 'public.orders'),
      of('untyped', 'public.orders'),
      of('ignorant', 'public.orders'),
    ]);
  });

  it('rejects at compile time what cannot be a handler', () => {
    class Sink {
      // @ts-expect-error no table of the pipeline
      @OnChange(shop, 'public.books')
      async unknownTable(): Promise<void> {}

      // @ts-expect-error no operation
      @OnChange(shop, 'public.orders', { on: ['upsert'] })
      async unknownOp(): Promise<void> {}

      // @ts-expect-error no operation
      @OnChange('public.orders', { on: ['upsert'] })
      async unknownOpOfText(): Promise<void> {}

      // @ts-expect-error no setting
      @OnChange(shop, 'public.orders', { ops: ['insert'] })
      async unknownSetting(): Promise<void> {}

      // @ts-expect-error the changes of another table
      @OnChange(shop, 'public.orders', { on: ['insert'] })
      async otherTable(_c: Insert<'public.customers', object>): Promise<void> {}

      // @ts-expect-error the changes of another table
      @OnChange('public.orders', { on: ['insert'] })
      async otherText(_c: Insert<'public.customers', Order>): Promise<void> {}

      // @ts-expect-error rows of another type
      @OnChange(shop, 'public.orders', { on: ['insert'] })
      async otherRow(
        _c: Insert<'public.orders', { missing: string }>,
      ): Promise<void> {}

      // @ts-expect-error updates come too
      @OnChange(shop, 'public.orders', { on: ['insert', 'update'] })
      async tooFew(_c: Insert<'public.orders', Order>): Promise<void> {}

      // @ts-expect-error updates come too
      @OnChange('public.orders', { on: ['insert', 'update'] })
      async tooFewOfText(_c: Insert): Promise<void> {}

      // @ts-expect-error truncations come too when nothing is said
      @OnChange(shop, 'public.orders')
      async noTruncate(
        _c:
          | Insert<'public.orders', Order>
          | Update<'public.orders', Order>
          | Delete<'public.orders', Order>,
      ): Promise<void> {}

      // @ts-expect-error no promise
      @OnChange(shop, 'public.orders')
      nothing(_c: Change<Shop>): void {}

      // @ts-expect-error no promise
      @OnChange('public.orders')
      value(_c: Change): number {
        return 1;
      }

      // @ts-expect-error another context
      @OnChange('public.orders')
      async other(_c: Change, _context: { lsn: bigint }): Promise<void> {}
    }
    expect(membersOf('change', Sink)).toHaveLength(13);
  });

  it('hides the changes of the transaction', () => {
    const changesOf = ({ transaction }: ChangeContext): unknown =>
      // @ts-expect-error they come one by one
      transaction.changes;
    expect(changesOf).toBeTypeOf('function');
  });

  it('refuses a static method', () => {
    expect(() => {
      class Sink {
        @OnChange('public.orders')
        static async told(): Promise<void> {}
      }
      return Sink;
    }).toThrow(
      'Sink.told is static; @OnChange() belongs on an instance member.',
    );
  });
});
