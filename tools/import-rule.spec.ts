import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { forbiddenImports } from './import-rule.mjs';

describe('import rule', () => {
  let root: string;

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'replicant-imports-'));
  });

  afterEach(() => {
    rmSync(root, { recursive: true });
  });

  const plant = (path: string, code: string): void => {
    const file = join(root, 'lib/engine', path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, code);
  };

  it.each([
    ['decode/a.ts', `import { x } from '../server/slot.js';`],
    ['decode/pgoutput/a.ts', `export * from '../../server/slot.js';`],
    ['assemble/a.ts', `import type { X } from '../deliver/sink.js';`],
    ['assemble/a.ts', `type X = import('../values/x.js').X;`],
    ['assemble/a.ts', `import type { X } from '../decode/decoder.js';`],
    ['deliver/a.ts', `const x = await import('../source/x.js');`],
    ['deliver/a.ts', `import { x } from '../options/x.js';`],
    ['model/a.ts', `import type { X } from '../options/x.js';`],
    ['source/a.ts', `import { x } from '../pipeline.js';`],
    ['server/a.ts', `import { x } from '../../sinks/x.js';`],
    ['server/a.ts', `import { Logger } from '@nestjs/common';`],
    ['server/a.spec.ts', `import { Test } from '@nestjs/testing';`],
    ['other.ts', `import { x } from './server/slot.js';`],
    ['cellar/a.ts', `import { x } from '../model/lsn.js';`],
  ])('refuses in %s: %s', (path, code) => {
    plant(path, `\n${code}\n`);
    const faults = forbiddenImports(root);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^lib/engine/${path}:2: `));
  });

  it('accepts what the rooms may import', () => {
    plant('decode/pgoutput/a.ts', `import { x } from '../../values/x.js';`);
    plant('decode/b.ts', `import { x } from './pgoutput/a.js';`);
    plant('deliver/a.ts', `import type { X } from '../options/x.js';`);
    plant('source/a.ts', `import pg from 'pg';\nimport '../model/lsn.js';`);
    plant('server/a.spec.ts', `import { x } from '../source/x.js';`);
    plant('pipeline.ts', `import { x } from './source/a.js';`);
    plant('pipeline/status.ts', `import { x } from '../source/a.js';`);
    expect(forbiddenImports(root)).toEqual([]);
  });
});
