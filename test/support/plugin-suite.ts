import { inject } from 'vitest';
import { findPluginBinaries } from './plugin-binaries.js';
import { type SuiteServer, useServer } from './suite.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Absent where no server with wal2json and pglogical can be made. */
    pluginServer?: true;
  }
}

/** Whether the suites that need wal2json or pglogical have to be left out. */
export const noPluginServer = inject('pluginServer') === undefined;

/** Starts a server that has wal2json and pglogical for all tests of a spec file, and removes it after them. */
export function usePluginServer(): SuiteServer {
  return useServer({
    findBinaries: findPluginBinaries,
    settings: {
      output_plugin_libraries: 'pgoutput,wal2json,pglogical_output',
      shared_preload_libraries: 'pglogical',
      // Each database with pglogical has a worker that watches over it.
      max_worker_processes: 40,
    },
  });
}
