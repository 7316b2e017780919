import { HaltError } from '../../model/halt.js';
import { quoteLiteral } from '../identifiers.js';
import type { CommandSession } from '../session.js';

/** The setting of a server that lists the plugins which may be used. Servers before the releases of 2026 have none. */
export const ALLOWED_PLUGINS = 'output_plugin_libraries';

/**
 * Makes sure that the server lets an output plugin be used, and that what it sends can be read: plugins other than `pgoutput` send text in the
 * encoding of the database. Most roles may not read what is allowed: then the server says so when the plugin is used.
 *
 * @throws {HaltError} `decoder/plugin_not_allowed`, `decoder/encoding_unsupported`
 */
export async function requirePlugin(
  session: CommandSession,
  plugin: string,
): Promise<void> {
  const [row] = await session.query(
    `select (select setting from pg_catalog.pg_settings where name = '${ALLOWED_PLUGINS}') as allowed,
      pg_catalog.current_setting('server_encoding') as encoding`,
  );
  const { allowed, encoding } = row ?? {};
  const listed = typeof allowed === 'string' ? names(allowed) : [plugin];
  if (!listed.includes(plugin))
    throw new HaltError('decoder/plugin_not_allowed', {
      detail: `run: ALTER SYSTEM SET ${ALLOWED_PLUGINS} = ${[...new Set([...listed.flatMap(apart), plugin])].map(quoteLiteral).join(', ')}`,
    });
  if (encoding !== 'UTF8')
    throw new HaltError('decoder/encoding_unsupported', {
      detail: `the database has the encoding ${encoding}`,
    });
}

/** A name between quotes, or one without. */
const NAME = /"((?:[^"]|"")*)"|[^\s,"]+/g;

/** The names in a setting that is a list: quoted where they have to be, as one is that has a comma. */
function names(list: string): string[] {
  return [...list.matchAll(NAME)].map(([text, quoted]) =>
    quoted === undefined ? text : quoted.replaceAll('""', '"'),
  );
}

/** Several names between one pair of quotes are one name, which nobody meant. */
function apart(name: string): string[] {
  return name.split(',').flatMap((part) => part.trim() || []);
}
