import { createRequire } from 'node:module';
import path from 'node:path';

/** The checkout: what runs is compiled and lies elsewhere. */
export function projectFolder(): string {
  const { resolve } = createRequire(import.meta.url);
  return path.dirname(resolve('nestjs-replicant/package.json'));
}
