import type { Queryable } from '../support/logical-slot.js';
import type { Mode } from './modes.js';

/** What sinks write beside the rows that they copy. The number of a copy is how often its table was cleared. */
export const CREATE_COPIES = `
  create table cleared(place bigint generated always as identity, run int, relation text);
  create table copied(place bigint generated always as identity, run int, relation text, copy int, keys text[]);
  create table completed(run int)`;

/** Forgets them. */
export const FORGET_COPIES = 'truncate cleared, copied, completed';

/** What has become of the rows that existed already. */
export interface CopyExamination {
  /** Calls that brought rows. */
  readonly chunks: number;
  /** Rows that came more than once by one copy of their table. */
  readonly copiedTwice: number;
  /** Calls that brought such rows. */
  readonly chunksAgain: number;
  /** The most of them that followed one crash. */
  readonly maxChunksPerCrash: number;
  /** Tables that were cleared while a copy of them was under way, though the sink keeps how far it is. */
  readonly begunAgain: number;
}

/** Examines the copies of a mode. */
export async function examineCopies(
  target: Queryable,
  { snapshot, mayCopyAgain }: Mode,
): Promise<CopyExamination> {
  const [row] = await target.query<CopyExamination & Record<string, unknown>>(
    EXAMINE,
  );
  if (row === undefined) throw new Error('There is no row.');
  const kept = snapshot === 'incremental' && mayCopyAgain === 0;
  return { ...row, begunAgain: kept ? row.begunAgain : 0 };
}

const EXAMINE = `
  with numbered as (
    select run, place, relation, copy, key, row_number() over (partition by relation, copy, key order by place) as nth
      from copied, unnest(keys) as key
  ), again as (
    select distinct run, place from numbered where nth > 1
  )
  select (select count(*)::int from copied) as chunks,
         (select count(*)::int from numbered where nth = 2) as "copiedTwice",
         (select count(*)::int from again) as "chunksAgain",
         coalesce((select max(times)::int from (select count(*) as times from again group by run) as runs), 0) as "maxChunksPerCrash",
         coalesce((select sum(greatest(times - 1 - (select count(*) from completed), 0))::int
                     from (select count(*) as times from cleared group by relation) as tables), 0) as "begunAgain"`;
