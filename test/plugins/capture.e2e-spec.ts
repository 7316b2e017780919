import { describe, expect, it } from 'vitest';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { changesOf } from '../support/changes-of.js';
import { capture } from '../support/capture.js';
import { createNode } from '../support/plugin-frames.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { waitFor } from '../support/wait-for.js';

const DECODERS: readonly Partial<PipelineOptions>[] = [
  { decoder: 'pgoutput', publication: 'p' },
  { decoder: 'wal2json', tables: [['public', 't']] },
  { decoder: 'pglogical', replicationSets: ['default'] },
];

describe.skipIf(noPluginServer)('a pipeline', () => {
  const suite = usePluginServer();

  it.each(DECODERS)('captures by $decoder', async (options) => {
    const source = await suite.database();
    const target = await suite.database('target');
    await source.query(
      'create table t(id int primary key, v text); create publication p for table t',
    );
    await createNode(source);
    await source.query(
      `select pglogical.replication_set_add_table('default', 't')`,
    );
    const { pipeline, applied } = capture(source, { target, ...options });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(`insert into t values (1, 'a'), (2, null)`);
    await source.query(`update t set v = 'b' where id = 2`);
    await source.query('update t set id = 3 where id = 1');
    await source.query('delete from t where id = 2');
    await waitFor(() => applied.length === 4 || pipeline.halt !== null);
    expect(pipeline.halt).toBeNull();
    expect(applied.map(changesOf)).toMatchObject([
      [
        { op: 'insert', record: { id: 1, v: 'a' } },
        { op: 'insert', record: { id: 2, v: null } },
      ],
      [{ op: 'update', record: { id: 2, v: 'b' }, old: null }],
      [
        {
          op: 'update',
          record: { id: 3, v: 'a' },
          old: { kind: 'key', record: { id: 1 } },
        },
      ],
      [{ op: 'delete', old: { kind: 'key', record: { id: 2 } } }],
    ]);
  });
});
