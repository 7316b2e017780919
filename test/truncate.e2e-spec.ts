import { describe, expect, it } from 'vitest';
import { changesIn, essence, streaming } from './support/delivered.js';
import { mirroring } from './support/mirroring.js';
import { useServer } from './support/suite.js';

const suite = useServer();

describe('TRUNCATE', () => {
  it('is a change of every table of the statement, in order and with its flags (Q01)', async () => {
    const { run, applied } = await streaming(
      suite,
      'create table a(id int primary key); create table b(id serial primary key, a int references a)',
    );
    await run('insert into a values (1)');
    await run('insert into b(a) values (1)');
    await run('truncate a cascade');
    await run('truncate a, b restart identity');
    const together = ['public.a', 'public.b'];
    const [, , ...truncates] = changesIn(applied);
    expect(truncates.map(essence)).toEqual(
      [
        { cascade: true, restartIdentity: false },
        { cascade: false, restartIdentity: true },
      ].flatMap((flags) =>
        together.map((relation) => ({
          op: 'truncate',
          relation,
          ...flags,
          together,
        })),
      ),
    );
    expect(applied).toHaveLength(4);
    expect(truncates.map(({ ordinal }) => ordinal)).toEqual([0, 1, 0, 1]);
  });

  it('keeps its place inside a transaction (Q02)', async () => {
    const { run, source, target } = await mirroring(
      suite,
      'create table a(id int primary key)',
    );
    await run('insert into a values (1)');
    await run('begin; truncate a; insert into a values (2); commit');
    expect(await target.query('select id from a')).toEqual([{ id: 2 }]);
    expect(await source.query('select id from a')).toEqual([{ id: 2 }]);
  });
});
