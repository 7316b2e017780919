import { compareTables, type Difference } from '../support/compare-tables.js';
import type { Queryable } from '../support/logical-slot.js';
import { CREATE_COPIES } from './examine-copies.js';
import type { Mode } from './modes.js';

/** What sinks write beside the mirror. Nothing keeps a second row of the same out. */
export const CREATE_LEDGER = `
  create table ledger(place bigint generated always as identity, run int, outcome text, lsn pg_lsn, id bigint, changes int);
  create table told(id bigint);
  ${CREATE_COPIES}`;

/** What has become of the transactions and messages of the source. */
export interface Examination {
  /** Transactions that were never applied, and messages that never came. */
  readonly lost: number;
  /** Transactions, with their messages, that were applied more than once. */
  readonly appliedTwice: number;
  /** Deliveries of what had been delivered for good before. */
  readonly redelivered: number;
  /** The most of them, of transactions, that followed one crash. */
  readonly maxDuplicatesPerCrash: number;
  /** Transactions of the source. */
  readonly transactions: number;
  /** Rows in which the mirror differs from the source, and messages that were rolled back and came. */
  readonly differences: number;
}

interface Sent extends Record<string, unknown> {
  /** Those of transactions, with their messages. */
  journal: string[];
  told: string[];
  called: string[];
}

interface Came extends Record<string, unknown> {
  /** Each as often as it was applied. */
  applied: string[];
  /** Those of transactions that the last copy has brought. */
  copied: string[];
  told: string[];
  called: string[];
  redelivered: number;
  most: number;
}

/** Compares what the source has committed with what the sink of a mode has. */
export async function examine(
  source: Queryable,
  target: Queryable,
  { messages, snapshot }: Pick<Mode, 'messages' | 'snapshot'>,
): Promise<Examination> {
  const sent = await only<Sent>(source, SENT);
  const came = await only<Came>(target, CAME);
  const wanted = messages ? sent : { ...sent, told: [], called: [] };
  // A transaction is in the initial copy or comes behind it, once. Beside a copy in chunks all of them come.
  const applied =
    snapshot === 'initial' ? [...came.copied, ...came.applied] : came.applied;
  const difference = await compareTables(source, target);
  return {
    lost:
      without(wanted.journal, applied) +
      without(wanted.told, came.told) +
      without(wanted.called, came.called),
    appliedTwice: repeated(applied) + repeated(came.told),
    redelivered: came.redelivered,
    maxDuplicatesPerCrash: came.most,
    transactions: sent.journal.length,
    differences: rows(difference) + without(came.told, wanted.told),
  };
}

/** The number of the last transaction that was applied; `null` before the first. */
export async function lastApplied(target: Queryable): Promise<number | null> {
  const { last } = await only<{ last: number | null }>(
    target,
    `select max(id)::int as last from ledger where outcome = 'applied'`,
  );
  return last;
}

/** Deliveries of transactions that were made again in the run with this number. */
export async function repeatedIn(
  target: Queryable,
  run: number,
): Promise<number> {
  const { count } = await only<{ count: number }>(
    target,
    `${AGAIN} select count(*)::int from again where run = ${run}`,
  );
  return count;
}

const SENT = `
  select array(select id::text from journal) as journal,
         array(select id::text from journal where tells) as told,
         array(select id::text from journal where calls) as called`;

/** A run follows each crash. */
const AGAIN = `
  with numbered as (
    select run, outcome, row_number() over (partition by outcome = 'heard', lsn order by place) as nth from ledger
  ), again as (
    select run from numbered where nth > 1 and outcome <> 'heard'
  )`;

const CAME = `
  ${AGAIN}
  select array(select id::text from ledger where outcome = 'applied' and id is not null) as applied,
         array(select key::json ->> 0 from copied, unnest(keys) as key where relation = 'public.journal'
                  and copy = (select count(*) from cleared where relation = 'public.journal')) as copied,
         array(select id::text from told) as told,
         array(select id::text from ledger where outcome = 'heard') as called,
         (select count(*)::int from numbered where nth > 1) as redelivered,
         coalesce((select max(times)::int from (select count(*) as times from again group by run) as runs), 0) as most`;

async function only<R extends Record<string, unknown>>(
  from: Queryable,
  sql: string,
): Promise<R> {
  const [row] = await from.query<R>(sql);
  if (row === undefined) throw new Error('There is no row.');
  return row;
}

/** How many are not among the others. */
function without(all: readonly string[], others: readonly string[]): number {
  const known = new Set(others);
  return all.filter((one) => !known.has(one)).length;
}

/** How many are there more than once. */
function repeated(all: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(one, (counts.get(one) ?? 0) + 1);
  return [...counts.values()].filter((count) => count > 1).length;
}

function rows({ missing, extra, different }: Difference): number {
  return missing + extra + different;
}
