import { ConnectionFault } from '../../model/connection-fault.js';
import { type Lsn, parseLsn } from '../../model/lsn.js';

/** A position that is not before any commit that a snapshot sees which was taken before. */
export const POSITION = `case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn()
  else pg_catalog.pg_current_wal_insert_lsn() end as position`;

/**
 * Up to where the log is flushed: what is behind it the stream does not have. Where a page begins, the position of the next record is behind the
 * header of the page, which has 24 or 40 bytes, and what is flushed ends before it. No record is so small, so there is nothing in between.
 */
export const FLUSHED = `case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn() else (
    select case when done - next >= -40 and (done - '0/0'::pg_catalog.pg_lsn) % pg_catalog.current_setting('wal_block_size')::integer = 0
      then next else done end
      from (select pg_catalog.pg_current_wal_flush_lsn() as done, pg_catalog.pg_current_wal_insert_lsn() as next) positions
  ) end as flushed`;

/** @throws {ConnectionFault} when the text is no position */
export function positionOf(text: string | null | undefined): Lsn {
  const position = parseLsn(text ?? '');
  if (position === null)
    throw new ConnectionFault('the server does not tell its position');
  return position;
}
