import { describe, expect, it } from 'vitest';
import { inserted } from './support/capture.js';
import { streaming } from './support/delivered.js';
import { useServer } from './support/suite.js';

const suite = useServer();

describe('prepared transactions', () => {
  it('are delivered when they commit, and never when they roll back (V01)', async () => {
    const { run, source, pipeline, applied } = await streaming(
      suite,
      'create table t(id int primary key)',
    );
    await run(`begin; insert into t values (1); prepare transaction 'g1'`);
    await run(`begin; insert into t values (2); prepare transaction 'g2'`);
    expect(applied).toEqual([]);
    await run(`commit prepared 'g1'`);
    await source.query(`rollback prepared 'g2'`);
    await run('insert into t values (3)');
    expect(inserted(applied, 'id')).toEqual([1, 3]);
    expect(pipeline.state).toBe('streaming');
  });
});
