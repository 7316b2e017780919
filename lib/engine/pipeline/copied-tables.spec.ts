import { describe, expect, it } from 'vitest';
import { unreachable } from '../../../test/support/stub-pipeline.js';
import { resolveOptions } from '../options/resolve-options.js';
import type { CommandSession } from '../server/session.js';
import { CopiedTables, neverCopied } from './copied-tables.js';

describe('neverCopied', () => {
  it.each([
    [null, null],
    [null, ['public.a']],
    [['public.a'], null],
  ])('does not know for %j and %j', (published, copied) => {
    expect(neverCopied(published, copied)).toBeNull();
  });

  it('names what is published and not copied, in order', () => {
    expect(
      neverCopied(
        ['public.late', 'public.a', 'app.later', 'public.late'],
        ['public.a', 'public.gone'],
      ),
    ).toEqual({ count: 2, tables: ['app.later', 'public.late'] });
    expect(neverCopied(['public.a'], ['public.a'])).toEqual({
      count: 0,
      tables: [],
    });
  });

  it('names the first fifty, and counts all', () => {
    const names = Array.from(
      { length: 120 },
      (_, index) => `public.t${String(index).padStart(3, '0')}`,
    );
    const found = neverCopied(names.toReversed(), []);
    expect(found?.count).toBe(120);
    expect(found?.tables).toEqual(names.slice(0, 50));
  });
});

describe('CopiedTables', () => {
  const session: CommandSession = {
    query: async () => published.map((name) => ({ name })),
    queryPatiently: async () => [],
  };
  let published: string[] = [];
  const options = resolveOptions({
    ...unreachable,
    goForwardOnly: false,
    snapshot: true,
  });

  it('goes by what was found last', async () => {
    const tables = new CopiedTables();
    expect(tables.never).toBeNull();
    tables.copied(['public.a']);
    expect(tables.never).toBeNull();
    published = ['public.a', 'public.late'];
    await tables.look(session, options, capture);
    expect(tables.never).toEqual({ count: 1, tables: ['public.late'] });
    tables.copied(['public.a', 'public.late']);
    expect(tables.never).toEqual({ count: 0, tables: [] });
    published = ['public.a', 'public.later'];
    await tables.look(session, options, capture);
    expect(tables.never).toEqual({ count: 1, tables: ['public.later'] });
    tables.copied(null);
    expect(tables.never).toBeNull();
  });

  it('asks nothing where no snapshot is wanted', async () => {
    const tables = new CopiedTables();
    tables.copied([]);
    published = ['public.late'];
    await tables.look(session, resolveOptions(unreachable), capture);
    expect(tables.never).toBeNull();
  });
});
