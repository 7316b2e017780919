import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { closingLine } from '../../tools/closing-line.js';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  resolve: {
    alias: {
      'nestjs-replicant': fileURLToPath(
        new URL('../../lib/index.ts', import.meta.url),
      ),
    },
  },
  test: {
    include: ['*.e2e-spec.ts'],
    globalSetup: ['generate-prisma-client.ts', 'check-types.ts'],
    reporters: ['default', closingLine],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
