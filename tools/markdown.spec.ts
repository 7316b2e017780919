import { describe, expect, it } from 'vitest';
import { codeBlocks, headingAnchors, relativeLinks } from './markdown.mjs';

describe('markdown', () => {
  it('finds the blocks of one language', () => {
    const page =
      'a\n\n```ts\nconst x = 1;\n```\n```sql\nSELECT\n```\n```ts\n```\n';
    expect(codeBlocks(page, 'ts')).toEqual([
      { line: 4, code: 'const x = 1;\n' },
      { line: 10, code: '' },
    ]);
    expect(codeBlocks(page, 'sql')).toEqual([{ line: 7, code: 'SELECT\n' }]);
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
