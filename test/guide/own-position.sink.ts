import {
  Checkpoint,
  formatLsn,
  type Lsn,
  OnSnapshot,
  OnSnapshotComplete,
  OnTransaction,
  parseLsn,
  ReplicantSink,
  type SnapshotCheckpoint,
  type SnapshotContext,
  type SnapshotRow,
  type Transaction,
} from 'nestjs-replicant';

type Account = { id: number; balance: string };
type Bank = { 'public.accounts': Account };

/** A database of another kind, that keeps one document under each key and can write several at once. */
export abstract class Documents {
  abstract get(key: string): Promise<unknown>;
  /** Removes the documents of these keys first. */
  abstract write(
    documents: ReadonlyMap<string, unknown>,
    removed?: readonly string[],
  ): Promise<void>;
  abstract removeAll(prefix: string): Promise<void>;
}

@ReplicantSink()
export class Balances {
  constructor(private readonly documents: Documents) {}

  @Checkpoint()
  async position(): Promise<Lsn | null> {
    const stored = await this.documents.get('position');
    return typeof stored === 'string' ? parseLsn(stored) : null;
  }

  @OnSnapshot()
  async copy(
    rows: readonly SnapshotRow<Bank>[],
    { firstForTable }: SnapshotContext,
  ): Promise<void> {
    if (firstForTable) await this.documents.removeAll('account ');
    await this.documents.write(
      new Map(rows.map(({ record }) => [`account ${record.id}`, record])),
    );
  }

  @OnSnapshotComplete()
  async copied({ commitLsn }: SnapshotCheckpoint): Promise<void> {
    await this.documents.write(new Map([['position', formatLsn(commitLsn)]]));
  }

  @OnTransaction()
  async apply(tx: Transaction<Bank>): Promise<void> {
    const written = new Map<string, unknown>([
      ['position', formatLsn(tx.commitLsn)],
    ]);
    const removed: string[] = [];
    for await (const change of tx.changes) {
      if (change.op === 'truncate') throw new Error('Accounts are kept.');
      if (change.op !== 'insert' && change.old !== null) {
        const key = `account ${change.old.record.id}`;
        written.delete(key);
        removed.push(key);
      }
      if (change.op !== 'delete')
        written.set(`account ${change.record.id}`, change.record);
    }
    await this.documents.write(written, removed);
  }
}
