import {
  PLUGIN_SERVER,
  preparePluginServer,
} from '../support/plugin-server.js';
import {
  PostgresServer,
  type ServerOptions,
} from '../support/postgres-server.js';
import { MODE_NAMES, type ModeName, MODES } from './modes.js';

/** The source has no patience, so that the server is told often what it may forget. */
const SETTINGS = { wal_sender_timeout: '2s' };

/** The servers of the modes, each started when a mode needs it first. */
export class Servers {
  readonly #ordinary = new Lazy({ settings: SETTINGS });
  readonly #withPlugins = new Lazy({
    ...PLUGIN_SERVER,
    settings: { ...PLUGIN_SERVER.settings, ...SETTINGS },
  });

  of(mode: ModeName): Promise<PostgresServer> {
    return (needsPlugin(mode) ? this.#withPlugins : this.#ordinary).start();
  }

  async remove(): Promise<void> {
    await this.#ordinary.remove();
    await this.#withPlugins.remove();
  }
}

/**
 * Those of the modes that can be played here. It is told which are left out.
 *
 * @param wanted - all that can be played when it is `null`
 * @throws when one that is wanted cannot
 */
export async function playable(
  wanted: readonly ModeName[] | null,
  tell: (line: string) => void,
  prepare = preparePluginServer,
): Promise<readonly ModeName[]> {
  const modes = wanted ?? MODE_NAMES;
  const unsure = modes.filter(needsPlugin);
  const absence = unsure.length === 0 ? null : await prepare();
  if (absence === null) return modes;
  const leftOut = `${unsure.join(', ')}, as no server with wal2json and pglogical can be made here: ${absence}`;
  if (wanted !== null) throw new Error(`Cannot be played: ${leftOut}`);
  tell(`Left out: ${leftOut}`);
  return modes.filter((mode) => !unsure.includes(mode));
}

function needsPlugin(mode: ModeName): boolean {
  return MODES[mode].decoder !== 'pgoutput';
}

class Lazy {
  #started: Promise<PostgresServer> | null = null;

  constructor(private readonly options: ServerOptions) {}

  start(): Promise<PostgresServer> {
    this.#started ??= PostgresServer.start(this.options);
    return this.#started;
  }

  async remove(): Promise<void> {
    // One that did not start has nothing to be removed.
    const server = await this.#started?.catch(() => null);
    await server?.remove();
  }
}
