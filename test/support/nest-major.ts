import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const entry = createRequire(import.meta.url).resolve('@nestjs/core');
const manifest = readFileSync(join(dirname(entry), 'package.json'), 'utf8');

/** Major version of the Nest that the tests run on. */
export const nestMajor = Number(/"version":\s*"(\d+)\./.exec(manifest)?.[1]);
