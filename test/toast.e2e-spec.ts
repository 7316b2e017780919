import { describe, expect, it } from 'vitest';
import { changesIn, essence, streaming } from './support/delivered.js';
import { NO_DIFFERENCE, compareTables } from './support/compare-tables.js';
import { mirroring } from './support/mirroring.js';
import { useServer } from './support/suite.js';

const suite = useServer();

const TABLE = `
  create extension hstore;
  create table d(id int primary key, big text, arr text[], j jsonb, bin bytea, h hstore, n int);
  alter table d alter big set storage external, alter arr set storage external, alter j set storage external,
    alter bin set storage external, alter h set storage external`;
const INSERT = `insert into d values (1, repeat('x', 9000), array_fill('y'::text, array[3000]),
  jsonb_build_object('k', repeat('z', 9000)), decode(repeat('ab', 9000), 'hex'), hstore('a', repeat('w', 9000)), 0)`;

describe('large values', () => {
  it('that an update leaves alone are named and absent, whatever their type (L01, L02)', async () => {
    const { run, applied } = await streaming(suite, TABLE);
    await run(`${INSERT}; update d set n = 1 where id = 1`);
    const [, update] = changesIn(applied).map(essence);
    expect(update).toEqual({
      op: 'update',
      relation: 'public.d',
      record: { id: 1, n: 1 },
      unchanged: ['big', 'arr', 'j', 'bin', 'h'],
      old: null,
    });
  });

  it('stay as they are in the copy (L01)', async () => {
    const { run, source, target } = await mirroring(suite, TABLE);
    await run(INSERT);
    await run('update d set n = 1 where id = 1');
    await run(`update d set n = 2, big = 'short', id = 2`);
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    expect(
      await target.query('select n, length(j::text) > 9000 as kept from d'),
    ).toEqual([{ n: 2, kept: true }]);
  });

  it('are taken from the old row under full identity (L03)', async () => {
    const { run, applied } = await streaming(
      suite,
      `${TABLE}; alter table d replica identity full`,
    );
    await run(`${INSERT}; update d set n = 2`);
    const [insert, update] = changesIn(applied);
    if (insert?.op !== 'insert' || update?.op !== 'update')
      throw new Error('An insert and an update were expected.');
    expect(update.unchanged).toEqual([]);
    expect(update.record).toEqual({ ...insert.record, n: 2 });
    expect(update.old).toEqual({ kind: 'full', record: insert.record });
  });

  it('are part of the old row of a delete under full identity (L05)', async () => {
    const { run, applied } = await streaming(
      suite,
      `${TABLE}; alter table d replica identity full`,
    );
    await run(`${INSERT}; delete from d`);
    const [insert, remove] = changesIn(applied);
    if (insert?.op !== 'insert' || remove?.op !== 'delete')
      throw new Error('An insert and a delete were expected.');
    expect(remove.old).toEqual({ kind: 'full', record: insert.record });
  });
});
