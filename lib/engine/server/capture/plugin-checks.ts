import { HaltError } from '../../model/halt.js';
import type { CommandSession } from '../session.js';

/**
 * Makes sure that the server lets an output plugin be used, and that what it sends can be read: plugins other than `pgoutput` send text in the
 * encoding of the database.
 *
 * @throws {HaltError} `decoder/plugin_not_allowed`, `decoder/encoding_unsupported`
 */
export async function requirePlugin(
  session: CommandSession,
  plugin: string,
): Promise<void> {
  const [row] = await session.query(
    `select pg_catalog.current_setting('output_plugin_libraries', true) as allowed, pg_catalog.current_setting('server_encoding') as encoding`,
  );
  const { allowed, encoding } = row ?? {};
  if (typeof allowed === 'string' && !names(allowed).includes(plugin))
    throw new HaltError('decoder/plugin_not_allowed', {
      detail: `output_plugin_libraries does not list ${plugin}`,
    });
  if (encoding !== 'UTF8')
    throw new HaltError('decoder/encoding_unsupported', {
      detail: `the database has the encoding ${encoding}`,
    });
}

/** The names in a setting that is a list: quoted where they have to be. */
function names(list: string): string[] {
  return list
    .split(',')
    .map((name) => name.trim().replaceAll(/^"|"$/g, '').replaceAll('""', '"'));
}
