import {
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

type Order = { id: number; total: number; note: string | null };
type Shop = { 'public.orders': Order };

const COLUMNS = ['id', 'total', 'note'] as const;

@ReplicantSink()
export class OrderCopy {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.query(sql, values),
  );

  constructor(private readonly target: Pool) {}

  @OnSnapshot()
  async copy(
    rows: readonly SnapshotRow<Shop>[],
    context: SnapshotContext,
  ): Promise<void> {
    await this.inTransaction(async (client) => {
      await this.checkpoints.keepProgress(
        (sql, values) => client.query(sql, values),
        context,
      );
      if (context.firstForTable) await client.query('DELETE FROM orders');
      const whole = rows.filter(({ unchanged }) => unchanged.length === 0);
      await client.query(
        `INSERT INTO orders (id, total, note)
         SELECT * FROM unnest($1::int[], $2::int[], $3::text[])
         ON CONFLICT (id) DO UPDATE SET total = excluded.total, note = excluded.note`,
        COLUMNS.map((column) => whole.map(({ record }) => record[column])),
      );
      // The stream has brought these rows, without the columns that the record has beside the key.
      for (const { record, unchanged } of rows)
        if (unchanged.length > 0) await update(client, record.id, record);
    });
  }

  @OnTransaction()
  async apply(tx: Transaction<Shop>): Promise<void> {
    await this.inTransaction(async (client) => {
      const isNew = await this.checkpoints.advance(
        (sql, values) => client.query(sql, values),
        tx,
      );
      if (!isNew) return;
      for await (const change of tx.changes) {
        if (change.op === 'truncate') await client.query('DELETE FROM orders');
        else if (change.op === 'delete')
          await remove(client, change.old.record);
        else if (change.op === 'insert') await upsert(client, change.record);
        else {
          // Without an old key the key is as it was.
          const { id } = change.old?.record ?? change.record;
          // The row may not be copied yet: what there is of it is written, and the snapshot fills in the rest.
          if (!(await update(client, id, change.record)))
            await upsert(client, change.record);
        }
      }
    });
  }

  private async inTransaction(
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

/** Writes the columns that the record has; a row that is there keeps the others. */
async function upsert(
  client: PoolClient,
  record: Partial<Order>,
): Promise<void> {
  const columns = COLUMNS.filter((column) => column in record);
  await client.query(
    `INSERT INTO orders (${columns.join(', ')})
     VALUES (${columns.map((_, index) => `$${index + 1}`).join(', ')})
     ON CONFLICT (id) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`,
    columns.map((column) => record[column]),
  );
}

/** Sets the columns that the record has, and says whether there is such a row. */
async function update(
  client: PoolClient,
  id: number | undefined,
  record: Partial<Order>,
): Promise<boolean> {
  const columns = COLUMNS.filter((column) => column in record);
  const { rowCount } = await client.query(
    `UPDATE orders SET ${columns.map((column, index) => `${column} = $${index + 2}`).join(', ')} WHERE id = $1`,
    [id, ...columns.map((column) => record[column])],
  );
  return rowCount === 1;
}

async function remove(
  client: PoolClient,
  { id }: Partial<Order>,
): Promise<void> {
  await client.query('DELETE FROM orders WHERE id = $1', [id]);
}
