import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * Writes the Prisma client into .build. Its generator runs in WebAssembly; the command would all the same download the
 * schema engine, which only migrations need, so it is told that the engine is there already.
 */
export default function generatePrismaClient(): void {
  execFileSync(
    process.execPath,
    ['node_modules/prisma/build/index.js', 'generate'],
    {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath },
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
}
