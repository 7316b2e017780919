import { describe, expect, it } from 'vitest';
import type { Change, Row } from '../../lib/engine/model/change.js';
import { capture } from '../support/capture.js';
import {
  capturedBy,
  PLUGIN_DECODERS,
  pluginSource,
} from '../support/plugin-sources.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';

const MEGABYTE = 1_000_000;
const DEPTH = 5_000;
/** Escapes and characters of several bytes throughout. */
const TEXT = 'é"\\\n😀\u0001'.repeat(MEGABYTE / 12);
const BYTES = Buffer.from(
  Array.from({ length: MEGABYTE }, (_, index) => (index * 7) % 256),
);
const DEEP = `${'['.repeat(DEPTH)}1.10${']'.repeat(DEPTH)}`;

describe.skipIf(noPluginServer)('values of a megabyte', () => {
  const suite = usePluginServer();

  it.each(PLUGIN_DECODERS)(
    'and JSON that is 5,000 deep come unharmed by %s',
    async (decoder) => {
      const { source, target } = await pluginSource(
        suite,
        'create table t(id int primary key, v text, b bytea, j json, jb jsonb)',
      );
      await source.query('alter table t replica identity full');
      const taken: Change[] = [];
      const { pipeline } = capture(source, {
        target,
        ...capturedBy(decoder),
        // Each is so large that it is handed over while it arrives.
        apply: async ({ changes }) => {
          for await (const change of changes) taken.push(change);
        },
      });
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query('insert into t values (1, $1, $2, $3, $4)', [
        TEXT,
        BYTES,
        DEEP,
        DEEP,
      ]);
      await source.query('update t set id = 2');
      await source.query('delete from t');
      await pipeline.caughtUp();
      expect(taken.map(rowsOf)).toEqual([[1], [2, 1], [2]]);
      expect(pipeline.halt).toBeNull();
    },
  );
});

/** The keys of the new row and the old one, if all else in them is as it was written. */
function rowsOf(change: Change): unknown[] {
  return [
    'record' in change ? change.record : null,
    'old' in change ? (change.old?.record ?? null) : null,
  ].flatMap((row) => (row === null ? [] : [isWhole(row) ? row['id'] : 'no']));
}

function isWhole({ v, b, j, jb }: Row): boolean {
  return (
    v === TEXT &&
    Buffer.isBuffer(b) &&
    b.equals(BYTES) &&
    j === DEEP &&
    jb === DEEP
  );
}
