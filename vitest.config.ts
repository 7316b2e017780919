import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { closingLine } from './tools/closing-line.js';

const fromRoot = (path: string): string =>
  fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: {
      'nestjs-replicant/terminus': fromRoot('./lib/health/index.ts'),
      'nestjs-replicant': fromRoot('./lib/index.ts'),
    },
  },
  test: {
    reporters: ['default', closingLine],
    // Every e2e file starts a server of its own.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          // Nothing in the library has state of its own, so that spec files may share what they have loaded.
          isolate: false,
          include: ['lib/**/*.spec.ts', 'tools/**/*.spec.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          include: ['test/**/*.e2e-spec.ts'],
          exclude: ['test/orms/**', 'test/plugins/**', 'test/bench/**'],
          globalSetup: [
            'tools/compile-test-apps.ts',
            'tools/prepare-cluster.ts',
          ],
        },
      },
      {
        extends: true,
        test: {
          name: 'plugins',
          // What needs wal2json or pglogical, wholly or in part.
          include: ['test/{plugins,bench}/**/*.e2e-spec.ts'],
          globalSetup: ['tools/prepare-plugin-server.ts'],
        },
      },
    ],
  },
});
