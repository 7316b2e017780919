import { describe, expect, it } from 'vitest';
import {
  assembler,
  feed,
  intakePorts,
  typeCatalog,
} from '../../../test/support/fed-intake.js';
import {
  beginFrame,
  commitFrame,
  insertFrame,
  messageFrame,
  relationFrame,
  typeFrame,
} from '../../../test/support/pgoutput-frames.js';
import type { Work } from '../deliver/work.js';
import { deferred } from '../model/deferred.js';
import { PipelineIntake } from './intake.js';
import type { CatalogType } from '../values/catalog-types.js';

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
  const subject = new PipelineIntake(
    'exact',
    intakePorts({
      catalog: typeCatalog(() => {
        asked.resolve();
        return catalog.promise;
      }),
      push: (work) => transaction.resolve(work),
      fail: (error) => transaction.reject(error),
    }),
  );
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
    begin: (skipThrough: bigint | null = null) =>
      subject.begin(assembler({ skipThrough })),
  };
}

describe('the intake', () => {
  it('keeps what arrives before it begins, though the buffer is used again', async () => {
    const { subject, begin, answer, transaction } = intake();
    feed(subject, FRAMES);
    answer();
    begin();
    expect(await transaction).toMatchObject({
      transaction: { changes: RECORDS.map((record) => ({ record })) },
    });
  });

  it('keeps what arrives while the catalog is asked, though the buffer is used again', async () => {
    const { subject, begin, asked, answer, transaction } = intake();
    begin();
    feed(subject, FRAMES);
    await asked;
    answer();
    expect(await transaction).toMatchObject({
      transaction: { changes: RECORDS.map((record) => ({ record })) },
    });
  });

  it('ends the connection behind a transaction by which too many tables were announced, since it has to keep all of them', () => {
    const pushed: Work[] = [];
    const subject = new PipelineIntake(
      'exact',
      intakePorts({ push: (work) => pushed.push(work) }),
      null,
      2,
    );
    subject.begin(assembler());
    const tables = [1, 2, 3, 4].map((oid) => [
      relationFrame({ oid, table: `t${oid}`, columns: [{ name: 'v' }] }),
      insertFrame(oid, ['x']),
    ]);
    feed(subject, [
      beginFrame(10n),
      ...(tables[0] ?? []),
      ...(tables[1] ?? []),
      commitFrame(10n, 20n),
      beginFrame(30n),
      ...(tables[2] ?? []),
      ...(tables[3] ?? []),
      commitFrame(30n, 40n),
      beginFrame(50n),
      insertFrame(1, ['x']),
      commitFrame(50n, 60n),
    ]);
    expect(pushed).toMatchObject([
      { kind: 'transaction', end: 20n },
      { kind: 'transaction', changes: 2, end: 40n },
      { kind: 'end' },
    ]);
    expect(pushed[2]).toHaveProperty(
      'fault.message',
      'more than 2 tables were announced on one connection',
    );
  });

  it('ends the connection at a destructive change of a table, behind what came before, and drops the open transaction', () => {
    const pushed: Work[] = [];
    const subject = new PipelineIntake(
      'exact',
      intakePorts({
        push: (work) => pushed.push(work),
      }),
    );
    subject.begin(assembler());
    feed(subject, [
      beginFrame(10n),
      relationFrame({ oid: 1, columns: [{ name: 'v' }, { name: 'w' }] }),
      insertFrame(1, ['x', 'y']),
      commitFrame(10n, 20n),
      beginFrame(30n),
      insertFrame(1, ['x', 'y']),
      relationFrame({ oid: 1, columns: [{ name: 'v' }] }),
      insertFrame(1, ['x']),
      commitFrame(30n, 40n),
    ]);
    expect(pushed).toMatchObject([
      { kind: 'transaction', end: 20n, shapes: [{ oid: 1 }] },
      {
        kind: 'end',
        fault: { commitLsn: 30n, changes: [{ change: 'column_dropped' }] },
      },
    ]);
    expect(subject.openBytes).toBe(0);
  });

  it('tells where a transaction ends that is left out as ordered, before it is passed: that may be durable at once', () => {
    const told: unknown[] = [];
    const subject = new PipelineIntake(
      'exact',
      intakePorts({
        push: (work) => told.push(work),
        takes: () => false,
        passedOver: (end) => told.push(end),
      }),
    );
    subject.begin(assembler({ passOver: { of: 'transaction', lsn: 10n } }));
    feed(subject, [
      beginFrame(10n),
      relationFrame({ oid: 1, columns: [{ name: 'v' }] }),
      insertFrame(1, ['x']),
      commitFrame(10n, 20n),
    ]);
    expect(told).toEqual([20n, { kind: 'pass', end: 20n, empty: false }]);
  });

  it.each([
    [null, true],
    [10n, false],
  ])(
    'tells a transaction without anything from one at or below the watermark %s',
    async (skipThrough, empty) => {
      const { subject, begin, transaction } = intake();
      begin(skipThrough);
      feed(subject, [beginFrame(10n), commitFrame(10n, 20n)]);
      expect(await transaction).toEqual({ kind: 'pass', end: 20n, empty });
    },
  );

  it('hands on messages that the sink takes, and passes over others at their own position, whatever the watermark', () => {
    const pushed: Work[] = [];
    const subject = new PipelineIntake(
      'exact',
      intakePorts({
        takes: (prefix) => prefix === 'outbox',
        push: (work) => pushed.push(work),
      }),
    );
    subject.begin(assembler({ skipThrough: 1_000n }));
    const content = Buffer.from([1, 0, 2]);
    const frames = [
      messageFrame({ flags: 0, lsn: 50n, prefix: 'outbox', content }),
      messageFrame({ flags: 0, lsn: 60n, prefix: 'outbox2', content }),
    ];
    feed(subject, frames);
    expect(pushed).toEqual([
      {
        kind: 'message',
        message: {
          transactional: false,
          lsn: 50n,
          prefix: 'outbox',
          content,
          ordinal: null,
        },
        bytes: frames[0]?.length,
      },
      { kind: 'pass', end: 60n, empty: true },
    ]);
  });
});
