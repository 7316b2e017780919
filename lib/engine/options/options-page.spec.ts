import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { resolveOptions } from './resolve-options.js';

const PAGE = readFileSync(
  new URL('../../../docs/options.md', import.meta.url),
  'utf8',
);
const ROW = /^\| `(\w+)` +\| .* \| +(?:`(.*)`)? *\|$/gm;

/** Options and defaults as the table of the page has them. */
function documented(): [name: string, fallback: string | undefined][] {
  return [...PAGE.matchAll(ROW)].map(([, name = '', fallback]) => [
    name,
    fallback,
  ]);
}

describe('docs/options.md', () => {
  it('has every option with its default', () => {
    const defaults = resolveOptions({
      connection: 'postgresql://db/shop',
      slotName: 'orders',
      publication: 'p',
    });
    const { slotName: _, publications: __, ...rest } = defaults;
    const page = Object.fromEntries(
      documented().filter(([, fallback]) => fallback !== undefined),
    );
    expect(page).toEqual(
      Object.fromEntries(
        Object.entries(rest).map(([name, value]) => [
          name,
          typeof value === 'string' ? `'${value}'` : JSON.stringify(value),
        ]),
      ),
    );
  });

  it('explains each of them, in the order in which they are checked', () => {
    const explained = [...PAGE.matchAll(/^\*\*`(\w+)`\*\*/gm)].map(
      ([, name]) => name,
    );
    expect(explained).toEqual(documented().map(([name]) => name));
  });

  it('lists them in the order in which they are checked', () => {
    const names = documented().map(([name]) => name);
    const wrong = Object.fromEntries(names.map((name) => [name, []]));
    const complaints: string[] = [];
    for (const name of names) {
      try {
        resolveOptions({
          connection: 'postgresql://db/shop',
          slotName: 'orders',
          publication: 'p',
          ...Object.fromEntries(
            names.slice(names.indexOf(name)).map((each) => [each, wrong[each]]),
          ),
        });
      } catch (error) {
        complaints.push(String(Reflect.get(Object(error), 'option')));
      }
    }
    expect(complaints).toEqual(names);
  });
});
