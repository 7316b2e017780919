import { type ClientBase, Pool } from 'pg';
import { onTestFinished } from 'vitest';
import type { TestDatabase } from './test-database.js';
import { type Copying, copying, type CopyingOptions } from './copying.js';
import { mirror } from './mirror.js';
import { present } from './present.js';

/**
 * Like {@link copying}, incrementally unless the options say otherwise, for tables that need no key: every row that comes is inserted, and an
 * update or delete has to find its row. The target needs the table `ledger` of {@link mirror}.
 */
export function keylessCopy(
  source: TestDatabase,
  options: CopyingOptions,
): Copying {
  const { target, beforeRows, afterRows } = options;
  const pool = new Pool({ ...target.connection, max: 1 });
  pool.on('error', () => {});
  let made: Copying | null = null;
  async function inTransaction(
    work: (copy: Copying, client: ClientBase) => Promise<void>,
  ): Promise<void> {
    const client = await pool.connect();
    let broken = true;
    try {
      await client.query('begin');
      await work(present(made), client);
      await client.query('commit');
      broken = false;
    } finally {
      client.release(broken);
    }
  }
  made = copying(source, {
    snapshot: { mode: 'incremental' },
    ...options,
    sink: {
      async snapshot(rows, context) {
        const call = { rows, context };
        await beforeRows?.(call);
        await inTransaction(async ({ checkpoints }, client) => {
          await checkpoints.keepProgress(
            (sql, values) => client.query(sql, [...values]),
            context,
          );
          if (context.firstForTable)
            await client.query(`delete from ${context.relation}`);
          if (rows.length > 0)
            await client.query(
              `insert into ${context.relation} select * from json_populate_recordset(null::${context.relation}, $1)`,
              [JSON.stringify(rows.map(({ record }) => record))],
            );
        });
        present(made).copied.push(call);
        await afterRows?.(call);
      },
      transaction: (transaction) =>
        inTransaction(async ({ checkpoints, applied }, client) => {
          if (await mirror(client, checkpoints, transaction))
            applied.push(transaction);
        }),
      ...options.sink,
    },
  });
  const { pipeline } = made;
  onTestFinished(async () => {
    await pipeline.stop();
    await pool.end();
  });
  return made;
}
