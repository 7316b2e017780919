import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { resolveOptions } from './resolve-options.js';

const PAGE = readPage('options.md');
const HEALTH_PAGE = readPage('health.md').split('\n## Options\n')[1] ?? '';
const ROW = /^\| `(\w+)` +\| .* \| +(?:`(.*)`)? *\|$/gm;

function readPage(name: string): string {
  return readFileSync(
    new URL(`../../../docs/${name}`, import.meta.url),
    'utf8',
  );
}

/** Options and defaults as the table of a page has them. */
function documented(
  page = PAGE,
): [name: string, fallback: string | undefined][] {
  return [...page.matchAll(ROW)].map(([, name = '', fallback]) => [
    name,
    fallback,
  ]);
}

/** Values as they are written. */
function printed(values: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'string' ? `'${value}'` : JSON.stringify(value),
    ]),
  );
}

describe('docs/options.md', () => {
  it('has every option with its default', () => {
    const defaults = resolveOptions({
      connection: 'postgresql://db/shop',
      slotName: 'orders',
      publication: 'p',
    });
    const {
      slotName: _,
      publications: __,
      health,
      sinkRetry,
      ...rest
    } = defaults;
    const page = Object.fromEntries(
      documented().filter(([, fallback]) => fallback !== undefined),
    );
    expect(page).toEqual(printed(rest));
    expect(Object.fromEntries(documented(HEALTH_PAGE))).toEqual(
      printed(health),
    );
    expect(sinkRetry).toEqual({ maxRetries: 0, backoffMs: 1000 });
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
