import {
  type Change,
  Checkpoint,
  CheckpointTable,
  OnSnapshot,
  OnTransaction,
  ReplicantSink,
  type SnapshotContext,
  type SnapshotRow,
  type Transaction,
} from 'nestjs-replicant';
import { Pool, type PoolClient } from 'pg';

/** The published table. */
type Source = { 'public.stock': { sku: string; pieces: number } };

/** Keeps a copy of the table `stock`. */
@ReplicantSink()
export class StockCopy {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.query(sql, values),
  );

  constructor(private readonly target: Pool) {}

  @OnTransaction()
  async apply(tx: Transaction<Source>): Promise<void> {
    await this.#transaction(async (client) => {
      if (await this.checkpoints.advance((sql, v) => client.query(sql, v), tx))
        for await (const change of tx.changes) await write(client, change);
    });
  }

  /** Takes the rows that exist before the first start. */
  @OnSnapshot()
  async copy(
    rows: readonly SnapshotRow<Source>[],
    { firstForTable }: SnapshotContext,
  ): Promise<void> {
    await this.#transaction(async (client) => {
      if (firstForTable) await client.query('DELETE FROM stock');
      for (const { record } of rows) await put(client, record);
    });
  }

  async #transaction(
    work: (client: PoolClient) => Promise<void>,
  ): Promise<void> {
    const client = await this.target.connect();
    let committed = false;
    try {
      await client.query('BEGIN');
      await work(client);
      await client.query('COMMIT');
      committed = true;
    } finally {
      client.release(!committed); // closing a failed connection rolls back
    }
  }
}

async function write(
  client: PoolClient,
  change: Change<Source>,
): Promise<void> {
  if (change.op === 'truncate') {
    await client.query('TRUNCATE stock');
    return;
  }
  if (change.op !== 'insert' && change.old !== null)
    await client.query('DELETE FROM stock WHERE sku = $1', [
      change.old.record.sku,
    ]);
  if (change.op !== 'delete') await put(client, change.record);
}

async function put(
  client: PoolClient,
  { sku, pieces }: Partial<Source['public.stock']>,
): Promise<void> {
  await client.query(
    `INSERT INTO stock (sku, pieces) VALUES ($1, $2)
     ON CONFLICT (sku) DO UPDATE SET pieces = excluded.pieces`,
    [sku, pieces],
  );
}
