import {
  PLUGIN_SERVER,
  preparePluginServer,
} from '../support/plugin-server.js';
import {
  PostgresServer,
  type ServerOptions,
} from '../support/postgres-server.js';
import { type Cores, pin } from './cores.js';

/** Keep the server from doing anything of its own while a reader is measured, and all WAL where the slots need it. */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  max_wal_size: '16GB',
  checkpoint_timeout: '1h',
  shared_buffers: '256MB',
  logical_decoding_work_mem: '512MB',
  log_replication_commands: 'off',
};

/** Starts the server that the readers read from, on the server's core. */
export async function startBenchServer(
  cores: Cores | null,
): Promise<PostgresServer> {
  return start(cores, {});
}

/** The same with the output plugins of all decoders. */
export async function startPluginBenchServer(
  cores: Cores | null,
): Promise<PostgresServer> {
  const absence = await preparePluginServer();
  if (absence !== null)
    throw new Error(
      `No server with wal2json and pglogical can be made here: ${absence}`,
    );
  return start(cores, PLUGIN_SERVER);
}

async function start(
  cores: Cores | null,
  options: ServerOptions,
): Promise<PostgresServer> {
  const server = await PostgresServer.start({
    ...options,
    settings: { ...SETTINGS, ...options.settings },
    tls: true,
  });
  if (cores !== null && server.pid !== null) pin(server.pid, cores.server);
  return server;
}

/** Says what was measured on. */
export async function describeServer(
  server: PostgresServer,
  cores: Cores | null,
): Promise<string> {
  const [row] = await server.query<{ version: string }>(
    `SELECT current_setting('server_version') AS version`,
  );
  const settings = Object.entries(SETTINGS).map((pair) => pair.join(' '));
  const place =
    cores === null
      ? 'not pinned to cores'
      : `server on core ${cores.server}, readers on core ${cores.client}`;
  return [
    `PostgreSQL ${row?.version ?? '?'}, ${place}; Node.js ${process.version}`,
    `server settings: ${settings.join(', ')}`,
  ].join('\n');
}
