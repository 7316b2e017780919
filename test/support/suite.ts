import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import type { ClusterTemplate } from './cluster.js';
import { PostgresServer, type ServerOptions } from './postgres-server.js';
import type { TestDatabase } from './test-database.js';

const HOOK_TIMEOUT_MS = 120_000;

declare module 'vitest' {
  export interface ProvidedContext {
    /** Absent where nothing was prepared. */
    clusterTemplate?: ClusterTemplate;
  }
}

/** For the first server of a file only: a second one must have a system identifier of its own. */
let template = inject('clusterTemplate');

/** The server of a spec file. */
export interface SuiteServer {
  /** Available in hooks and tests. */
  readonly server: PostgresServer;
  /** A fresh database for the running test (or its beforeEach), dropped with its slots when the test has finished. */
  database(prefix?: string): Promise<TestDatabase>;
}

/** Starts a server for all tests of a spec file, and removes it after them. */
export function useServer(options: ServerOptions = {}): SuiteServer {
  let server: PostgresServer | undefined;

  beforeAll(async () => {
    const first = { ...options, template };
    template = undefined;
    server = await PostgresServer.start(first);
  }, HOOK_TIMEOUT_MS);

  afterAll(async () => {
    await server?.remove();
  }, HOOK_TIMEOUT_MS);

  return {
    get server() {
      if (server === undefined)
        throw new Error('The server is there in hooks and tests only.');
      return server;
    },
    async database(prefix) {
      const database = await this.server.createDatabase(prefix);
      onTestFinished(() => database.close(), HOOK_TIMEOUT_MS);
      return database;
    },
  };
}
