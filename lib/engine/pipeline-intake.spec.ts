import { describe, expect, it } from 'vitest';
import {
  beginFrame,
  commitFrame,
  insertFrame,
  relationFrame,
  typeFrame,
} from '../../test/support/pgoutput-frames.js';
import { Assembler } from './assemble/assembler.js';
import { RelationHistory } from './assemble/relation-history.js';
import { SchemaWatch } from './assemble/schema-watch.js';
import type { Work } from './deliver/serial-delivery.js';
import { deferred } from './model/deferred.js';
import { PipelineIntake } from './pipeline-intake.js';
import { Positions } from './source/positions.js';
import { XLOG_DATA_HEADER } from './source/wire.js';
import type { CatalogType } from './values/catalog-types.js';

const ARRAY_OF_MOODS = 16_385;
const TABLE = 1;
const FRAMES = [
  beginFrame(10n),
  typeFrame(ARRAY_OF_MOODS, 'public', '_mood'),
  relationFrame({
    oid: TABLE,
    columns: [
      { name: 'id', typeOid: 23 },
      { name: 'moods', typeOid: ARRAY_OF_MOODS },
      { name: 'note' },
    ],
  }),
  insertFrame(TABLE, [
    '1',
    '{sad,"very sad"}',
    'longer than twelve characters',
  ]),
  insertFrame(TABLE, ['2', '{}', 'short']),
  commitFrame(10n, 20n),
];
const RECORDS = [
  { id: 1, moods: ['sad', 'very sad'], note: 'longer than twelve characters' },
  { id: 2, moods: [], note: 'short' },
];

/** An intake that is fed as a socket feeds it, whose catalog has not answered yet. */
function intake() {
  const asked = deferred<void>();
  const catalog = deferred<readonly CatalogType[]>();
  const transaction = deferred<Work>();
  const subject = new PipelineIntake('exact', {
    positions: new Positions(0n, false),
    readTypes: () => {
      asked.resolve();
      return catalog.promise;
    },
    push: (work) => transaction.resolve(work),
    arrived: () => {},
    keepalive: () => {},
    fail: (error) => transaction.reject(error),
  });
  return {
    subject,
    asked: asked.promise,
    transaction: transaction.promise,
    answer: () =>
      catalog.resolve([
        {
          oid: String(ARRAY_OF_MOODS),
          kind: 'array',
          inner: '16384',
          delimiter: ',',
        },
        { oid: '16384', kind: 'other', inner: '0', delimiter: ',' },
      ]),
    begin: () =>
      subject.begin(
        new Assembler({
          pipeline: 'p',
          slotName: 's',
          maxTransactionBytes: 10_000,
          maxMessageBytes: 1000,
          skipThrough: null,
          schema: new SchemaWatch(new RelationHistory(), () => {}),
          drained: () => {},
        }),
      ),
  };
}

/** Gives all frames out of one buffer, which is overwritten as soon as they were taken. */
function feed(subject: PipelineIntake): void {
  const frames = FRAMES.map((payload) => {
    const header = Buffer.alloc(XLOG_DATA_HEADER);
    header.write('w');
    return Buffer.concat([header, payload]);
  });
  const bytes = Buffer.concat(frames);
  let start = 0;
  for (const { length } of frames) {
    subject.take(bytes, start, start + length);
    start += length;
  }
  bytes.fill(0);
}

describe('the intake', () => {
  it('keeps what arrives before it begins, though the buffer is used again', async () => {
    const { subject, begin, answer, transaction } = intake();
    feed(subject);
    answer();
    begin();
    expect(await transaction).toMatchObject({
      transaction: { changes: RECORDS.map((record) => ({ record })) },
    });
  });

  it('keeps what arrives while the catalog is asked, though the buffer is used again', async () => {
    const { subject, begin, asked, answer, transaction } = intake();
    begin();
    feed(subject);
    await asked;
    answer();
    expect(await transaction).toMatchObject({
      transaction: { changes: RECORDS.map((record) => ({ record })) },
    });
  });
});
