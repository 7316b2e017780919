import { buildPluginServer, findPluginBinaries } from './plugin-binaries.js';
import type { ServerOptions } from './postgres-server.js';

/** A server that has wal2json and pglogical. */
export const PLUGIN_SERVER = {
  findBinaries: findPluginBinaries,
  settings: {
    output_plugin_libraries: 'pgoutput,wal2json,pglogical_output',
    shared_preload_libraries: 'pglogical',
    // Each database with pglogical has a worker that watches over it.
    max_worker_processes: 40,
  },
} as const satisfies ServerOptions;

/** Makes what that server needs, unless it is there already. Gives why it cannot be made here, or `null`. */
export async function preparePluginServer(): Promise<string | null> {
  try {
    await buildPluginServer();
    return null;
  } catch (error) {
    return reasonOf(error);
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const said = 'stderr' in error ? String(error.stderr).trim() : '';
  const lines = said.split('\n');
  // So mmdebstrap marks its errors; what comes after them only follows from them.
  const cause = lines.find((line) => line.startsWith('E: '));
  return (cause ?? lines.at(-1)) || error.message;
}
