import { describe, expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { useServer } from './support/suite.js';
import { changesOf } from './support/changes-of.js';

const suite = useServer();

describe('streaming', () => {
  it('delivers every committed transaction once, in order, and nothing that was rolled back', async () => {
    const source = await suite.database();
    const target = await suite.database('target');
    await source.query(
      'create table t(id int primary key, v text); create publication p for table t',
    );
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query("insert into t values (1, 'a'), (2, 'b')");
    await source.query("begin; insert into t values (3, 'c'); rollback");
    await source.query("update t set v = 'z' where id = 1");
    await source.query('delete from t where id = 2');
    await pipeline.caughtUp();
    expect(applied.map((each) => changesOf(each).map(({ op }) => op))).toEqual([
      ['insert', 'insert'],
      ['update'],
      ['delete'],
    ]);
    expect(inserted(applied, 'id')).toEqual([1, 2]);
  });
});
