import { NodeSnapshotReader } from './node-snapshot-reader.js';
import { PsqlCopy } from './psql-copy.js';
import type { SnapshotReader } from './snapshot-reader.js';

/** Every reader, in the order in which they take turns. */
export function allSnapshotReaders(): SnapshotReader[] {
  return [
    new PsqlCopy(),
    new NodeSnapshotReader({
      name: 'raw',
      options: 'COPY in Node.js, counts rows on the socket and reads none',
      bounded: true,
      script: 'snapshot-raw.js',
    }),
    new NodeSnapshotReader({
      name: 'cursor',
      options: 'pg-cursor, 1,000 rows at a time, the types of pg',
      bounded: false,
      script: 'snapshot-cursor.js',
    }),
    application('initial-text', 'snapshot: true, types text', {
      MODE: 'initial',
      TYPES: 'text',
    }),
    application('initial-exact', 'snapshot: true, types exact', {
      MODE: 'initial',
      TYPES: 'exact',
    }),
    application(
      'incremental',
      'mode incremental, 10,000 rows a chunk, types text, idle stream',
      { MODE: 'incremental', TYPES: 'text' },
    ),
  ];
}

function application(
  name: string,
  how: string,
  settings: Readonly<Record<string, string>>,
): SnapshotReader {
  return new NodeSnapshotReader({
    name,
    options: `a Nest application, ${how}; the sink counts rows`,
    bounded: true,
    script: 'snapshot-application.js',
    settings,
  });
}
