import { describe, expect, it } from 'vitest';
import {
  headingAnchors,
  relativeLinks,
  typescriptBlocks,
} from './markdown.mjs';

describe('markdown', () => {
  it('finds blocks of TypeScript, and no others', () => {
    const page =
      'a\n\n```ts\nconst x = 1;\n```\n```sql\nSELECT\n```\n```ts\n```\n';
    expect(typescriptBlocks(page)).toEqual([
      { line: 4, code: 'const x = 1;\n' },
      { line: 10, code: '' },
    ]);
  });

  it('finds links to files and headings, outside code', () => {
    const page =
      '[a](docs/a.md)\n[b](https://b.example/)\n```\n[c](c.md)\n```\n[d](d.md#e-f) [g](#h)\n';
    expect(relativeLinks(page)).toEqual([
      { line: 1, target: 'docs/a.md', anchor: undefined },
      { line: 6, target: 'd.md', anchor: 'e-f' },
      { line: 6, target: '', anchor: 'h' },
    ]);
  });

  it('names the anchors of headings', () => {
    const page = '# What `pins` WAL?\n```sh\n# no\n```\n## On first start\n';
    expect(headingAnchors(page)).toEqual(['what-pins-wal', 'on-first-start']);
  });
});
