import type { ClientBase } from 'pg';
import {
  formatLsn,
  type Lsn,
  type Message,
  type Transaction,
} from '../../../lib/index.js';
import { setting } from '../../apps/settings.js';
import type { Change } from '../../../lib/engine/model/change.js';
import { applyByKey } from '../../support/keyed-mirror.js';
import { keyText } from '../examine-copies.js';
import type { Points } from './points.js';

/** A key that a row has left. */
interface Vacated {
  readonly relation: string;
  readonly key: string;
}

/** Far below what is held of a transaction that arrives, so that most of it is still to come. */
const ARRIVED_CHANGES = 20;

/** Applies a transaction by key, with a row of the ledger, inside the open database transaction of `client`. */
export async function applyTransaction(
  client: ClientBase,
  transaction: Transaction,
  points: Points,
): Promise<void> {
  const { changes, commitLsn } = transaction;
  const arriving = Symbol.asyncIterator in changes;
  const middle = arriving ? ARRIVED_CHANGES : Math.floor(changes.length / 2);
  let count = 0;
  let id: unknown = null;
  const vacated: Vacated[] = [];
  for await (const change of changes) {
    if (count === middle) {
      if (arriving) await points.at('while it arrives');
      else await points.at('in a transaction', 'while draining');
    }
    if (change.relation === 'public.journal' && change.op === 'insert')
      id = change.record['id'];
    await applyByKey(client, change);
    const key = vacatedBy(change);
    if (key !== null) vacated.push({ relation: change.relation, key });
    count += 1;
  }
  await client.query(
    `insert into vacated(relation, key)
       select relation, key from jsonb_to_recordset($1) as given(relation text, key text)`,
    [JSON.stringify(vacated)],
  );
  // Complete once the changes were read to their end.
  for (const message of transaction.messages)
    await client.query('insert into told values ($1)', [idIn(message)]);
  await record(client, 'applied', commitLsn, id, count);
}

/** Notes a transaction that was applied before. */
export async function skipTransaction(
  client: ClientBase,
  { commitLsn }: Transaction,
): Promise<void> {
  await record(client, 'skipped', commitLsn, null, 0);
}

/** Notes a message that belongs to no transaction. */
export async function hear(
  client: ClientBase,
  message: Message,
): Promise<void> {
  await record(client, 'heard', message.lsn, idIn(message), 0);
}

/** The key under which there is no row any more, or another one; `null` when every row keeps its own. */
function vacatedBy(change: Change): string | null {
  if (change.op === 'truncate' || change.op === 'insert') return null;
  const { op, columns, old } = change;
  if (old === null) return null;
  const key = keyText(columns, old.record);
  return op === 'update' && key === keyText(columns, change.record)
    ? null
    : key;
}

async function record(
  client: ClientBase,
  outcome: 'applied' | 'skipped' | 'heard',
  lsn: Lsn,
  id: unknown,
  changes: number,
): Promise<void> {
  await client.query(
    'insert into ledger(run, outcome, lsn, id, changes) values ($1, $2, $3, $4, $5)',
    [setting('RUN'), outcome, formatLsn(lsn), id, changes],
  );
}

function idIn({ content }: Message): string {
  return content.toString('utf8');
}
