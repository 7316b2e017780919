import { inject } from 'vitest';
import { PLUGIN_SERVER } from './plugin-server.js';
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
  return useServer(PLUGIN_SERVER);
}
