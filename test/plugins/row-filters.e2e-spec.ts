import { describe, expect, it } from 'vitest';
import { capture } from '../support/capture.js';
import { changesIn, essence } from '../support/delivered.js';
import { createNode } from '../support/plugin-frames.js';
import { addTable } from '../support/plugin-sources.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { sourceAndTarget } from '../support/source-and-target.js';

describe.skipIf(noPluginServer)('a row filter of a replication set', () => {
  const suite = usePluginServer();

  /** What comes of the statements while rows of `t` with `v > 0` are captured. */
  async function captured(
    identity: string,
    statements: readonly string[],
  ): Promise<{ readonly changes: object[]; readonly warnings: string[] }> {
    const { source, target } = await sourceAndTarget(
      suite,
      'create table t(id int primary key, v int)',
    );
    await createNode(source);
    await addTable(source, 'default', 't', { filter: 'v > 0' });
    await source.query(
      `alter table t replica identity ${identity}; insert into t values (1, 1), (2, 2), (3, 0)`,
    );
    const { pipeline, applied } = capture(source, {
      target,
      decoder: 'pglogical',
      replicationSets: 'default',
    });
    const warnings: string[] = [];
    pipeline.on('warning', ({ message }) => warnings.push(message));
    pipeline.start();
    await pipeline.whenStreaming();
    for (const statement of statements) await source.query(statement);
    await pipeline.caughtUp();
    return { changes: changesIn(applied).map(essence), warnings };
  }

  it('is asked about the new row of an update, so one that leaves it is not told, and one that enters it comes as an update', async () => {
    const { changes } = await captured('full', [
      'update t set v = 0 where id = 1',
      'update t set v = 3 where id = 3',
    ]);
    expect(changes).toMatchObject([
      { op: 'update', record: { id: 3, v: 3 }, old: { record: { v: 0 } } },
    ]);
  });

  it('is asked about the old row of a delete, of which only the key is known under the default identity', async () => {
    const deletes = ['delete from t where id = 2', 'delete from t where v = 0'];
    const byKey = await captured('default', deletes);
    expect(byKey.changes).toEqual([]);
    const whole = await captured('full', deletes);
    expect(whole.changes).toMatchObject([
      { op: 'delete', old: { record: { id: 2, v: 2 } } },
    ]);
  });

  it('is warned of', async () => {
    const { warnings } = await captured('default', []);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^the replication set "default" has a row filter on public\.t: /,
      ),
    ]);
  });
});
