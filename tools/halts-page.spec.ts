import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { HALTS } from '../lib/engine/model/halts.js';
import { haltsPage } from './halts-page.js';

// `npx vitest run tools/halts-page.spec.ts -u` writes the page.
it('docs/halts.md is what the table of halts says', async () => {
  await expect(haltsPage()).toMatchFileSnapshot('../docs/halts.md');
});

/** Halts that no server of the matrix can be made to cause; their decisions have unit tests. */
const NOT_PROVOKED = [
  // The oldest server that can be installed is the oldest that is supported.
  'config/server_too_old',
  // A slot that nobody creates has a position.
  'slot_origin/slot_origin_unavailable',
];

it('every halt is provoked on a real server', () => {
  const folder = new URL('../test/', import.meta.url);
  const specs = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.e2e-spec.ts'))
    .map((name) => readFileSync(new URL(name, folder), 'utf8'))
    .join('\n');
  const missing = Object.keys(HALTS).filter(
    (code) => !specs.includes(`'${code}'`),
  );
  expect(missing).toEqual(NOT_PROVOKED);
});
