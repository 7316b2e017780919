import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { present } from '../../../test/support/present.js';
import { resolveDecoder, type ResolvedDecoder } from './decoder-options.js';
import {
  resolveBatchDelivery,
  resolveCheckpointStore,
} from './delivery-options.js';
import { resolveOptions } from './resolve-options.js';
import { resolveSnapshot } from './snapshot-options.js';
import { resolveStreaming } from './streaming-options.js';

const WHOLE_PAGE = readPage('options.md');
/** What stands before the first section of its own. */
const PAGE = WHOLE_PAGE.split('\n## ')[0] ?? '';
const ROW = /^\| `(\w+)` +\| .* \| +(?:`(.*)`)? *\|$/gm;

function readPage(name: string): string {
  return readFileSync(
    new URL(`../../../docs/${name}`, import.meta.url),
    'utf8',
  );
}

/** What stands under a heading. */
function section(page: string, heading: string): string {
  return page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
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

/** The options of a decoder that has more of them, with their defaults. */
function wal2json(): Extract<ResolvedDecoder, { name: 'wal2json' }> {
  const resolved = resolveDecoder({
    decoder: 'wal2json',
    tables: [['public', 'orders']],
  });
  if (resolved.name === 'wal2json') return resolved;
  throw new Error('It is another decoder.');
}

describe('docs/options.md', () => {
  it('has every option with its default', () => {
    const defaults = resolveOptions({
      connection: 'postgresql://db/shop',
      slotName: 'orders',
      publication: 'p',
    });
    const { slotName: _, decoder, health, sinkRetry, ...rest } = defaults;
    const page = Object.fromEntries(
      documented().filter(([, fallback]) => fallback !== undefined),
    );
    const { allowKeylessTables, schemaCheckInterval } = wal2json();
    expect(page).toEqual(
      printed({
        ...rest,
        decoder: decoder.name,
        allowKeylessTables,
        schemaCheckInterval,
      }),
    );
    expect(
      Object.fromEntries(documented(section(readPage('health.md'), 'Options'))),
    ).toEqual(printed(health));
    expect(
      Object.fromEntries(documented(section(WHOLE_PAGE, '`sinkRetry`'))),
    ).toEqual(printed(sinkRetry));
  });

  it('has every setting of a checkpoint store and of batches with its default', () => {
    const { connection, ...store } = Object.fromEntries(
      documented(section(WHOLE_PAGE, '`checkpointStore`')),
    );
    expect(connection).toBeUndefined();
    expect(store).toEqual(
      printed(
        present(resolveCheckpointStore({ connection: 'postgresql://db/shop' })),
      ),
    );
    const batches = printed(present(resolveBatchDelivery({}, false)));
    expect(
      Object.fromEntries(documented(section(WHOLE_PAGE, '`batchDelivery`'))),
    ).toEqual(batches);
  });

  it('has every setting of streaming, and of its files, with its default', () => {
    const { maxInflightBytes } = resolveOptions({
      connection: 'postgresql://db/shop',
      slotName: 'orders',
      publication: 'p',
    });
    const [streaming = '', files = ''] = section(
      WHOLE_PAGE,
      '`streaming`',
    ).split('\n### `spill`\n');
    expect(Object.fromEntries(documented(streaming))).toEqual(
      printed(present(resolveStreaming({}, maxInflightBytes))),
    );
    const { dir, ...rest } = present(
      resolveStreaming({ spill: {} }, maxInflightBytes)?.spill,
    );
    expect(dir).toBe(join(tmpdir(), 'nestjs_replicant_spill'));
    expect(Object.fromEntries(documented(files))).toEqual({
      dir: "join(os.tmpdir(), 'nestjs_replicant_spill')",
      ...printed(rest),
    });
  });

  it('has every setting of a snapshot with its mode and its default', () => {
    const table = section(WHOLE_PAGE, '`snapshot`');
    const defaults = documented(table);
    for (const mode of ['initial', 'incremental'] as const) {
      const ofMode = defaults.filter(([name]) =>
        new RegExp(`^\\| \`${name}\` +\\| \`'${mode}'\``, 'm').test(table),
      );
      const { mode: _, ...settings } = present(resolveSnapshot({ mode }));
      expect(Object.fromEntries(ofMode)).toEqual(printed(settings));
    }
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
