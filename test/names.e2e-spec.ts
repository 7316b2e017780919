import { describe, expect, it } from 'vitest';
import { Pipeline } from '../lib/engine/pipeline.js';
import { capture, inserted } from './support/capture.js';
import { changesIn, essence, streaming } from './support/delivered.js';
import { currentLsn, readSlot } from './support/logical-slot.js';
import { useServer } from './support/suite.js';

const suite = useServer();

describe('names of tables and columns', () => {
  it('arrive exactly, in any script (T01)', async () => {
    const { run, applied } = await streaming(
      suite,
      `create schema "схема";
       create table "схема"."Größe_表😀"("Ключ" int primary key, "naïve col" text, "a""b.c" int)`,
    );
    await run(`insert into "схема"."Größe_表😀" values (1, 'ok', 2)`);
    expect(changesIn(applied)).toMatchObject([
      {
        schema: 'схема',
        table: 'Größe_表😀',
        relation: 'схема.Größe_表😀',
        record: { Ключ: 1, 'naïve col': 'ok', 'a"b.c': 2 },
      },
    ]);
  });

  it('are compared as they are: an underscore stands for itself (T03)', async () => {
    const { run, applied } = await streaming(
      suite,
      `create schema a_b; create schema axb;
       create type a_b.kind as enum('x'); create type axb.kind as enum('y');
       create table a_b.t(id int primary key, k a_b.kind[]); create table axb.t(id int primary key, v int)`,
    );
    await run(`insert into a_b.t values (1, '{x}')`);
    expect(changesIn(applied).map(essence)).toEqual([
      { op: 'insert', relation: 'a_b.t', record: { id: 1, k: ['x'] } },
    ]);
  });

  it('may be as long as the server keeps them (T05)', async () => {
    const cut =
      'aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg';
    const { run, applied } = await streaming(
      suite,
      `create table "${cut}ggXX"(id int primary key)`,
    );
    await run(`insert into "${cut}ggXX" values (1)`);
    expect(changesIn(applied)).toMatchObject([{ table: cut }]);
  });

  it('are data: a column named __proto__ is one like any other', async () => {
    const { run, applied } = await streaming(
      suite,
      `create table t(id int primary key, "__proto__" text, "constructor" text); alter table t replica identity full`,
    );
    await run(`insert into t values (1, 'a', 'b')`);
    await run(`update t set "__proto__" = null`);
    const [insert, update] = changesIn(applied);
    if (insert?.op !== 'insert' || update?.op !== 'update')
      throw new Error('An insert and an update were expected.');
    expect(Object.entries(insert.record)).toEqual([
      ['id', 1],
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ]);
    expect(Object.entries(update.record)).toContainEqual(['__proto__', null]);
    expect(Object.entries(update.old?.record ?? {})).toContainEqual([
      '__proto__',
      'a',
    ]);
    expect(Object.getPrototypeOf(insert.record)).toBe(Object.prototype);
    expect(JSON.parse(JSON.stringify(applied[0]))).toMatchObject({
      changes: [{ record: { id: 1, constructor: 'b' } }],
    });
    expect(JSON.stringify(applied[0])).toContain('"__proto__":"a"');
  });
});

describe('names of slots and publications', () => {
  it.each([
    ['of digits', (unique: string) => `${Number.parseInt(unique, 16)}`],
    ['of 63 characters', (unique: string) => unique.padEnd(63, 's')],
    ['that are key words', () => 'select'],
  ])('%s work (T04)', async (_, slotNameFor) => {
    const source = await suite.database();
    const slotName = slotNameFor(source.name.split('_')[1] ?? '');
    await source.query(
      'create table t(id int primary key); create publication p for table t',
    );
    const { pipeline, applied } = capture(source, {
      target: await suite.database('target'),
      slotName,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    expect(await readSlot(suite.server, slotName)).toMatchObject({
      active: true,
      plugin: 'pgoutput',
    });
    await source.query('insert into t values (1)');
    await pipeline.caughtUp(await currentLsn(source));
    expect(inserted(applied, 'id')).toEqual([1]);
    await pipeline.stop();
    await pipeline.dropSlot();
    expect(await readSlot(suite.server, slotName)).toBeNull();
  });

  it.each(['My-Slot', 'x" --', "x'; drop table t; --", 's'.repeat(64), ''])(
    'that the server would refuse are refused before any connection (T04)',
    (slotName) => {
      const make = (): Pipeline =>
        new Pipeline('test', {
          connection: { host: '127.0.0.1', port: 1 },
          slotName,
          publication: 'p',
        });
      expect(make).toThrow(
        expect.objectContaining({ name: 'ReplicantConfigError' }),
      );
    },
  );

  it('of publications may hold anything that the server accepts, and longer ones are refused (T05)', async () => {
    const publication = `P, "q" 'r' \\ é`;
    const source = await suite.database();
    await source.query(
      `create table t(id int primary key); create publication "${publication.replaceAll('"', '""')}" for table t`,
    );
    const { pipeline, applied } = capture(source, {
      target: await suite.database('target'),
      publication,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp(await currentLsn(source));
    expect(inserted(applied, 'id')).toEqual([1]);
    expect(
      () =>
        new Pipeline('test', {
          connection: { ...source.connection },
          slotName: 's',
          publication: 'é'.repeat(32),
        }),
    ).toThrow(/publication/);
  });
});
