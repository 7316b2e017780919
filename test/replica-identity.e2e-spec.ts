import { describe, expect, it } from 'vitest';
import { NO_DIFFERENCE, compareTables } from './support/compare-tables.js';
import { changesIn, essence, streaming } from './support/delivered.js';
import { mirroring } from './support/mirroring.js';
import { useServer } from './support/suite.js';

const suite = useServer();

describe('the old row', () => {
  it('is what the replica identity said when the row was written (O03)', async () => {
    const { run, applied } = await streaming(
      suite,
      'create table t(id int primary key, v text)',
      { schemaChange: async () => {} },
    );
    await run(`insert into t values (1, 'a')`);
    await run(`update t set v = 'b'`);
    await run('alter table t replica identity full');
    await run(`update t set v = 'c'`);
    await run('delete from t');
    await run('alter table t replica identity default');
    await run(`insert into t values (2, 'z')`);
    await run('delete from t');
    expect(
      changesIn(applied).flatMap((change) =>
        change.op === 'update' || change.op === 'delete' ? [change.old] : [],
      ),
    ).toEqual([
      null,
      { kind: 'full', record: { id: 1, v: 'b' } },
      { kind: 'full', record: { id: 1, v: 'c' } },
      { kind: 'key', record: { id: 2 } },
    ]);
  });

  it('has the columns of the index that is the replica identity, and no others', async () => {
    const { run, applied } = await streaming(
      suite,
      `create table t(id int primary key, email text not null unique, v text);
       alter table t replica identity using index t_email_key`,
    );
    await run(`insert into t values (1, 'a', 'x')`);
    await run(`update t set v = 'y'`);
    await run(`update t set id = 2`);
    await run(`update t set email = 'b'`);
    await run('delete from t');
    expect(
      changesIn(applied).flatMap((change) =>
        change.op === 'update' || change.op === 'delete' ? [change.old] : [],
      ),
    ).toEqual([
      null,
      null,
      { kind: 'key', record: { email: 'a' } },
      { kind: 'key', record: { email: 'b' } },
    ]);
  });

  it('has the old key when an update changes the key, and a copy keeps one row (O04)', async () => {
    const table = 'create table t(id int primary key, v text)';
    const { run, applied } = await streaming(suite, table);
    const copy = await mirroring(suite, table);
    for (const statement of [
      `insert into t values (1, 'a')`,
      'update t set id = 2',
      'update t set id = id + 1',
    ]) {
      await run(statement);
      await copy.run(statement);
    }
    expect(changesIn(applied).map(essence)).toMatchObject([
      { op: 'insert', record: { id: 1, v: 'a' } },
      {
        op: 'update',
        record: { id: 2, v: 'a' },
        old: { kind: 'key', record: { id: 1 } },
      },
      {
        op: 'update',
        record: { id: 3, v: 'a' },
        old: { kind: 'key', record: { id: 2 } },
      },
    ]);
    expect(await copy.target.query('select * from t')).toEqual([
      { id: 3, v: 'a' },
    ]);
  });

  it('tells NULL columns under full identity, once for each row that is deleted (O05)', async () => {
    const table =
      'create table t(a int, b text); alter table t replica identity full';
    const { run, applied } = await streaming(suite, table);
    const copy = await mirroring(suite, table);
    for (const statement of [
      'insert into t values (null, null), (null, null), (1, null)',
      'delete from t where a is null',
    ]) {
      await run(statement);
      await copy.run(statement);
    }
    const deleted = {
      op: 'delete',
      relation: 'public.t',
      old: { kind: 'full', record: { a: null, b: null } },
    };
    expect(changesIn(applied).slice(3).map(essence)).toEqual([
      deleted,
      deleted,
    ]);
    expect(await compareTables(copy.source, copy.target)).toEqual(
      NO_DIFFERENCE,
    );
  });
});
