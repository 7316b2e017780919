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

type Shop = {
  'public.customers': { id: number; name: string | null };
  'public.orders': { id: number; customer: number; note: string | null };
};

interface Mirror {
  readonly table: string;
  readonly columns: readonly string[];
}

/** By the name that rows, changes and contexts have for a table: compared as a whole, never taken apart. */
const MIRRORS: { readonly [K in keyof Shop]: Mirror } = {
  'public.customers': { table: 'customers', columns: ['id', 'name'] },
  'public.orders': { table: 'orders', columns: ['id', 'customer', 'note'] },
};

function mirrorOf(relation: string): Mirror {
  const known = Object.entries(MIRRORS).find(([name]) => name === relation);
  // A table that somebody has added to the publication: nothing is passed over in silence.
  if (known === undefined) throw new Error('A table has no mirror.');
  return known[1];
}

@ReplicantSink()
export class ShopCopy {
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
      // Progress alone, of no table.
      if (context.relation === '') return;
      // All rows are of this table; there may be none to tell it by.
      const mirror = mirrorOf(context.relation);
      if (context.firstForTable)
        await client.query(`DELETE FROM ${mirror.table}`);
      for (const { record, unchanged } of rows)
        if (unchanged.length === 0) await upsert(client, mirror, record);
        else await update(client, mirror, record.id, record);
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
        const mirror = mirrorOf(change.relation);
        const { table } = mirror;
        if (change.op === 'truncate')
          await client.query(`DELETE FROM ${table}`);
        else if (change.op === 'delete')
          await client.query(`DELETE FROM ${table} WHERE id = $1`, [
            change.old.record.id,
          ]);
        else {
          const id = change.op === 'update' ? change.old?.record.id : undefined;
          const { record } = change;
          if (!(await update(client, mirror, id ?? record.id, record)))
            await upsert(client, mirror, record);
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

/** What a record holds of the columns of its mirror. */
function valuesOf({ columns }: Mirror, record: object): [string, unknown][] {
  return Object.entries(record).filter(([column]) => columns.includes(column));
}

async function upsert(
  client: PoolClient,
  mirror: Mirror,
  record: object,
): Promise<void> {
  const values = valuesOf(mirror, record);
  const columns = values.map(([column]) => column);
  await client.query(
    `INSERT INTO ${mirror.table} (${columns.join(', ')})
     VALUES (${columns.map((_, index) => `$${index + 1}`).join(', ')})
     ON CONFLICT (id) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`,
    values.map(([, value]) => value),
  );
}

/** Sets what the record holds, and says whether there is such a row. */
async function update(
  client: PoolClient,
  mirror: Mirror,
  id: number | undefined,
  record: object,
): Promise<boolean> {
  const values = valuesOf(mirror, record);
  const { rowCount } = await client.query(
    `UPDATE ${mirror.table} SET ${values.map(([column], index) => `${column} = $${index + 2}`).join(', ')} WHERE id = $1`,
    [id, ...values.map(([, value]) => value)],
  );
  return rowCount === 1;
}
