import {
  type Change,
  type ChangeContext,
  OnChange,
  OnSnapshot,
  ReplicantSink,
  type SnapshotContext,
  type SnapshotRow,
} from 'nestjs-replicant';

type Product = { id: number; name: string };
type Shop = { 'public.products': Product };

/** Whatever finds products. A document that is put again is there once, and keeps the fields that it is not given. */
export abstract class SearchIndex {
  abstract clear(): Promise<void>;
  abstract put(documents: readonly Partial<Product>[]): Promise<void>;
  abstract remove(id: number | undefined): Promise<void>;
}

@ReplicantSink()
export class ProductSearch {
  constructor(private readonly index: SearchIndex) {}

  @OnSnapshot()
  async load(
    rows: readonly SnapshotRow<Shop>[],
    { firstForTable }: SnapshotContext,
  ): Promise<void> {
    if (firstForTable) await this.index.clear();
    if (rows.length > 0) await this.index.put(rows.map(({ record }) => record));
  }

  @OnChange('public.products')
  async follow(change: Change<Shop>, _context: ChangeContext): Promise<void> {
    if (change.op === 'truncate') return this.index.clear();
    if (change.op !== 'insert' && change.old !== null)
      await this.index.remove(change.old.record.id);
    if (change.op !== 'delete') await this.index.put([change.record]);
  }
}
