import { expect, it } from 'vitest';
import { haltsPage } from './halts-page.js';

// `npx vitest run tools/halts-page.spec.ts -u` writes the page.
it('docs/halts.md is what the table of halts says', async () => {
  await expect(haltsPage()).toMatchFileSnapshot('../docs/halts.md');
});
