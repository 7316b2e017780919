import { describe, expect, it } from 'vitest';
import type { CheckpointContext } from '../engine/model/checkpoint.js';
import type {
  SnapshotCheckpoint,
  SnapshotContext,
  SnapshotRow,
} from '../engine/model/snapshot.js';
import { definePipeline } from '../pipelines/define-pipeline.js';
import { membersOf } from '../sinks/sink.metadata.js';
import { OnSnapshotComplete } from './on-snapshot-complete.decorator.js';
import { OnSnapshot } from './on-snapshot.decorator.js';
import { SnapshotProgress } from './snapshot-progress.decorator.js';

interface Shop {
  'public.orders': { id: string; total: string };
  'public.items': { sku: string };
}

interface Books {
  'public.books': { isbn: string };
}

const shop = definePipeline<Shop>('shop');

describe('OnSnapshot', () => {
  it('accepts every handler that takes rows of a snapshot and returns a promise', () => {
    class Sink {
      @OnSnapshot()
      async untyped(
        _rows: readonly SnapshotRow[],
        _context: SnapshotContext,
      ): Promise<void> {}

      @OnSnapshot()
      async typed(_rows: readonly SnapshotRow<Shop>[]): Promise<void> {}

      @OnSnapshot(shop)
      async handled(
        rows: readonly SnapshotRow<Shop>[],
        { progress }: SnapshotContext,
      ): Promise<(string | null | undefined)[]> {
        return rows.map((row) =>
          row.relation === 'public.items' ? row.record.sku : progress,
        );
      }

      @OnSnapshot()
      async ignorant(): Promise<number> {
        return 1;
      }
    }
    expect(membersOf('snapshot', Sink)).toEqual([
      { property: 'untyped' },
      { property: 'typed' },
      { property: 'handled', pipeline: 'shop' },
      { property: 'ignorant' },
    ]);
  });

  it('rejects at compile time what cannot be a handler', () => {
    class Sink {
      // @ts-expect-error the parameter is no list of rows
      @OnSnapshot()
      async one(_row: SnapshotRow): Promise<void> {}

      // @ts-expect-error these are no rows
      @OnSnapshot()
      async numbers(_rows: readonly number[]): Promise<void> {}

      // @ts-expect-error the list is not the handler's to change
      @OnSnapshot()
      async mutable(_rows: SnapshotRow[]): Promise<void> {}

      // @ts-expect-error rows of other tables
      @OnSnapshot(shop)
      async otherTables(_rows: readonly SnapshotRow<Books>[]): Promise<void> {}

      // @ts-expect-error no promise
      @OnSnapshot()
      nothing(_rows: readonly SnapshotRow[]): void {}

      // @ts-expect-error nobody passes a third argument
      @OnSnapshot()
      async three(
        _rows: readonly SnapshotRow[],
        _context: SnapshotContext,
        _more: string,
      ): Promise<void> {}

      // @ts-expect-error not a method
      @OnSnapshot()
      readonly property = 1;
    }
    expect(membersOf('snapshot', Sink)).toHaveLength(7);
  });
});

describe('OnSnapshotComplete', () => {
  it('accepts a method that takes a checkpoint and returns a promise', () => {
    class Sink {
      @OnSnapshotComplete()
      async done({ commitLsn }: SnapshotCheckpoint): Promise<bigint> {
        return commitLsn;
      }

      // @ts-expect-error no promise
      @OnSnapshotComplete()
      now(_checkpoint: SnapshotCheckpoint): void {}

      // @ts-expect-error a position alone
      @OnSnapshotComplete()
      async position(_lsn: bigint): Promise<void> {}
    }
    expect(
      membersOf('snapshotComplete', Sink).map(({ property }) => property),
    ).toEqual(['done', 'now', 'position']);
  });
});

describe('SnapshotProgress', () => {
  it('accepts a method that reads a text or null', () => {
    class Sink {
      @SnapshotProgress()
      async read({ slotName }: CheckpointContext): Promise<string | null> {
        return slotName === '' ? null : slotName;
      }

      // @ts-expect-error undefined is not "nothing stored yet"
      @SnapshotProgress()
      async maybe(): Promise<string | undefined> {
        return undefined;
      }

      // @ts-expect-error no promise
      @SnapshotProgress()
      now(): string {
        return '';
      }

      // @ts-expect-error must be a method
      @SnapshotProgress()
      readonly stored: string | null = null;
    }
    expect(
      membersOf('snapshotProgress', Sink).map(({ property }) => property),
    ).toEqual(['read', 'maybe', 'now', 'stored']);
  });
});
