import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: {
    alias: {
      'nestjs-replicant/terminus': fileURLToPath(
        new URL('./lib/health/index.ts', import.meta.url),
      ),
      'nestjs-replicant': fileURLToPath(
        new URL('./lib/index.ts', import.meta.url),
      ),
    },
  },
  test: {
    include: ['lib/**/*.spec.ts', 'test/**/*.e2e-spec.ts'],
    exclude: ['node_modules/**', 'test/orms/**'],
  },
});
