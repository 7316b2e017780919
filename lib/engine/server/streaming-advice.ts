import type { ResolvedOptions } from '../options/resolve-options.js';
import type { CommandSession } from './session.js';

/**
 * Finds out whether the server begins to send a running transaction only when it is larger than what may wait in memory, and there is no disk.
 *
 * @returns a sentence, or none
 * @see {@link https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-LOGICAL-DECODING-WORK-MEM | logical_decoding_work_mem}
 */
export async function adviseStreaming(
  session: CommandSession,
  {
    streaming,
    maxInflightBytes,
  }: Pick<ResolvedOptions, 'streaming' | 'maxInflightBytes'>,
): Promise<string[]> {
  if (streaming === null || streaming.spill !== null) return [];
  const rows = await session.query(
    "select setting from pg_catalog.pg_settings where name = 'logical_decoding_work_mem'",
  );
  const kilobytes = Number(rows[0]?.['setting']);
  if (maxInflightBytes >= kilobytes * 1024) return [];
  return [
    `streaming has no spill, and maxInflightBytes (${maxInflightBytes}) is less than the server's logical_decoding_work_mem (${kilobytes} kB), from which on it sends a running transaction: nearly each would halt the pipeline; add spill: {} to streaming, or raise maxInflightBytes`,
  ];
}
