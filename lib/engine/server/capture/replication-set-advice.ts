import type { CommandSession } from '../session.js';

/**
 * Finds replication sets that leave something out of what happens to their tables.
 *
 * @param sets - their names, as a list of literals
 * @returns a sentence for each
 */
export async function adviseReplicationSets(
  session: CommandSession,
  sets: string,
): Promise<string[]> {
  const limited = await session.query(
    `select pg_catalog.quote_ident(set_name) as set, pg_catalog.concat_ws(', ', case when not replicate_insert then 'inserts' end,
        case when not replicate_update then 'updates' end, case when not replicate_delete then 'deletes' end,
        case when not replicate_truncate then 'truncates' end) as missing
      from pglogical.replication_set where set_name in (${sets})
        and not (replicate_insert and replicate_update and replicate_delete and replicate_truncate) order by 1`,
  );
  const filtered = await session.query(
    `select pg_catalog.quote_ident(s.set_name) as set, pg_catalog.format('%I.%I', n.nspname, c.relname) as table
      from pglogical.replication_set s join pglogical.replication_set_table t on t.set_id = s.set_id
        join pg_catalog.pg_class c on c.oid = t.set_reloid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where s.set_name in (${sets}) and t.set_row_filter is not null order by 1, 2`,
  );
  return [
    ...limited.map(
      ({ set, missing }) =>
        `the replication set ${set} does not have ${missing}, so the sink never receives them; if it should, use pglogical.alter_replication_set`,
    ),
    ...filtered.map(
      ({ set, table }) =>
        `the replication set ${set} has a row filter on ${table}: the sink is never told that an update takes a row out of it, nor of a delete whose old row, of which only the replica identity is known, does not meet it; filter by columns of the replica identity that never change`,
    ),
  ];
}
