import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createCheckpointTable } from './checkpoint-statements.js';

describe('createCheckpointTable', () => {
  it('creates the table that docs/operations.md shows', () => {
    const docs = readFileSync(
      new URL('../../../docs/operations.md', import.meta.url),
      'utf8',
    );
    const byHand = createCheckpointTable('replicant_checkpoints').replace(
      'IF NOT EXISTS ',
      '',
    );
    expect(docs).toContain(`${byHand};`);
  });
});
