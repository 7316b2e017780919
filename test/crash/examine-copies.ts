import type { Row } from '../../lib/engine/model/change.js';
import type { Column } from '../../lib/engine/model/relation.js';
import type { Queryable } from '../support/logical-slot.js';
import type { Mode } from './modes.js';

/**
 * What sinks write beside the rows that they copy. The number of a copy is how often its table was cleared. What the stream takes away
 * from a key is noted as well: a row that comes to that key later is another one, which a copy may bring.
 */
export const CREATE_COPIES = `
  create sequence places;
  create table cleared(run int, relation text);
  create table copied(place bigint default nextval('places'), run int, relation text, copy int, keys text[]);
  create table vacated(place bigint default nextval('places'), relation text, key text);
  create table completed(run int)`;

/** Forgets them. */
export const FORGET_COPIES = 'truncate cleared, copied, vacated, completed';

/** A key, as the tables name it. */
export function keyText(columns: readonly Column[], record: Row): string {
  return JSON.stringify(
    columns.filter(({ key }) => key).map(({ name }) => record[name]),
  );
}

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

/** Some of the rows that came more than once by one copy, with the run that brought them again, for whoever looks for the reason. */
export async function describeCopiedTwice(
  target: Queryable,
): Promise<string[]> {
  const rows = await target.query<{ text: string }>(
    `with ${REPEATED} select format('run %s brought %s %s again', run, relation, key) as text from repeated order by place limit 5`,
  );
  return rows.map(({ text }) => text);
}

const REPEATED = `handed as (
    select run, place, relation, copy, key, lag(place) over (partition by relation, copy, key order by place) as before
      from copied, unnest(keys) as key
  ), repeated as (
    select * from handed
     where before is not null
       and not exists (select from vacated
                        where vacated.relation = handed.relation and vacated.key = handed.key
                          and vacated.place between handed.before and handed.place)
  )`;

const EXAMINE = `
  with ${REPEATED}, again as (
    select distinct run, place from repeated
  )
  select (select count(*)::int from copied) as chunks,
         (select count(distinct (relation, copy, key))::int from repeated) as "copiedTwice",
         (select count(*)::int from again) as "chunksAgain",
         coalesce((select max(times)::int from (select count(*) as times from again group by run) as runs), 0) as "maxChunksPerCrash",
         coalesce((select sum(greatest(times - 1 - (select count(*) from completed), 0))::int
                     from (select count(*) as times from cleared group by relation) as tables), 0) as "begunAgain"`;
