import { describe, expect, it } from 'vitest';
import { DocumentReader } from './document-reader.js';

const NEXT = ',"typeoid":';

function typeName(text: string, behind = NEXT): string {
  const reader = new DocumentReader();
  const bytes = Buffer.from(text + behind);
  reader.open(bytes, 0, bytes.length);
  const name = reader.typeName(NEXT);
  expect(reader.at).toBe(Buffer.byteLength(text));
  return name;
}

describe('the name of a type', () => {
  it.each([
    ['"integer"', 'integer'],
    ['"numeric(10,2)"', 'numeric(10,2)'],
    [String.raw`"\"S\".mood[]"`, '"S".mood[]'],
    [String.raw`"public.\"q\"\"q\""`, 'public."q""q"'],
    ['"größe"', 'größe'],
  ])('is JSON: %s', (text, name) => {
    expect(typeName(text)).toBe(name);
  });

  it.each([
    '"S".mood',
    '"Größe"."größe"',
    '"S"."a""b"',
    '"S"."a""b"(3)',
    '"S".geometry(Point,4326)',
    String.raw`"S"."b\"`,
    String.raw`"b\"."c"`,
    '"a"",""typeoid"":1,""b"',
    String.raw`"\"",""typeoid"":1"`,
  ])('is SQL that JSON cannot read: %s', (text) => {
    expect(typeName(text)).toBe(text);
  });

  it('is JSON where SQL would say the same', () => {
    expect(typeName('"My Type"')).toBe('My Type');
  });

  it.each([
    ['', NEXT],
    ['mood', NEXT],
    ['"S', NEXT],
    ['"S"."mood', NEXT],
    ['"S".mood', ',"typeid":'],
    ['"S".mo"od', NEXT],
  ])('is refused: %s', (text, behind) => {
    expect(() => typeName(text, behind)).toThrow('type without a name');
  });
});
