import { describe, expect, it } from 'vitest';
import {
  beginFrame,
  commitFrame,
  deleteFrame,
  insertFrame,
  relationFrame,
  startupFrame,
} from '../../../test/support/pglogical-frames.js';
import type { DecodeFault } from '../decode/decoder.js';
import { PglogicalDecoder } from '../decode/pglogical/pglogical-decoder.js';
import type { CatalogTable } from '../model/relation.js';
import type { RowMessage } from '../snapshot/incremental/stream-watch.js';
import { Decoding } from './decoding.js';

const OID = 16_400;
const TABLE: CatalogTable = {
  oid: OID,
  schema: 'public',
  table: 't',
  replicaIdentity: 'default',
  columns: [{ name: 'id', typeOid: 23, typeModifier: -1, key: true }],
  generated: [],
};
const QUEUE = relationFrame({
  oid: 16_500,
  schema: 'pglogical',
  table: 'queue',
  columns: ['message_type', 'message'],
});

/** What is shown of a stream of pglogical, and what cannot be. */
async function watched(
  frames: readonly Buffer[],
  watchFrom = 0,
): Promise<{
  readonly shown: RowMessage[];
  readonly faults: DecodeFault[];
}> {
  const decoding = new Decoding('exact', {
    makeDecoder: (types) => new PglogicalDecoder(types, [TABLE]),
    catalog: {
      readTypes: async () => [],
      nameTypes: async () => [{ oid: 23, schema: 'pg_catalog', name: 'int4' }],
      readTable: async () => TABLE,
    },
  });
  const shown: RowMessage[] = [];
  const faults: DecodeFault[] = [];
  const stream = decoding.watchedBy(
    {
      active: true,
      begin: () => {},
      change: (message) => void shown.push(message),
      arriving: () => {},
      ended: () => {},
      commit: () => {},
      keepalive: () => {},
    },
    (fault) => faults.push(fault),
  );
  for (const [index, frame] of frames.entries()) {
    const feed = () =>
      decoding.feed(frame, 0, frame.length, {
        message: (message, bytes, start, end) => {
          if (index >= watchFrom) stream.taken(message, bytes, start, end);
        },
        fault: ({ detail }) => {
          throw new Error(detail);
        },
      });
    for (let needed = feed(); needed !== null; needed = feed())
      await decoding.ask(needed);
  }
  return { shown, faults };
}

describe('a watched stream', () => {
  it('shows rows as text, also of a plugin that says first how it speaks', async () => {
    const { shown, faults } = await watched([
      startupFrame(),
      beginFrame(0x100n),
      relationFrame({ oid: OID, columns: ['*id'] }),
      insertFrame(OID, ['7']),
      deleteFrame(OID, ['7']),
      commitFrame(0x100n, 0x120n),
    ]);
    expect(shown).toMatchObject([
      { kind: 'insert', record: { id: '7' } },
      { kind: 'delete', old: { kind: 'key', record: { id: '7' } } },
    ]);
    expect(faults).toEqual([]);
  });

  it('shows a truncation that is told by a row of a table that nobody is told of', async () => {
    const { shown, faults } = await watched([
      startupFrame(),
      QUEUE,
      insertFrame(16_500, ['T', '{"schema_name":"public","table_name":"t"}']),
    ]);
    expect(shown).toMatchObject([
      { kind: 'truncate', relations: [{ name: 'public.t' }] },
    ]);
    expect(faults).toEqual([]);
  });

  it('tells of a row that it cannot show', async () => {
    const { shown, faults } = await watched(
      [
        startupFrame(),
        beginFrame(0x100n),
        relationFrame({ oid: OID, columns: ['*id'] }),
        insertFrame(OID, ['7']),
      ],
      2,
    );
    expect(shown).toEqual([]);
    expect(faults).toMatchObject([
      { code: 'protocol_violation' },
      { code: 'protocol_violation' },
    ]);
  });
});
