import { describe, expect, it } from 'vitest';
import { ConnectionFault } from '../model/connection-fault.js';
import type { ReplicationMessage } from '../model/replication-message.js';
import type { Lsn } from '../model/lsn.js';
import type { Relation } from '../model/relation.js';
import type { Assembled } from './assembled.js';
import { Assembler } from './assembler.js';
import type { PassOrder } from './pass-order.js';
import { RelationHistory } from './relation-history.js';
import { SchemaWatch } from './schema-watch.js';
import { changesOf } from '../../../test/support/changes-of.js';

const MICROS = 1_767_323_045_123_456n; // 2026-01-02T03:04:05.123456Z

function table(name: string): Relation {
  return {
    oid: 16384,
    schema: 'public',
    table: name,
    name: `public.${name}`,
    replicaIdentity: 'default',
    columns: [
      { name: 'id', typeOid: 23, type: 'int4', typeModifier: -1, key: true },
    ],
  };
}

const relation = table('t');

function begin(finalLsn: Lsn, xid = 7): ReplicationMessage {
  return { kind: 'begin', finalLsn, commitTimeMicros: MICROS, xid };
}

function commit(commitLsn: Lsn, endLsn: Lsn): ReplicationMessage {
  return { kind: 'commit', commitLsn, endLsn, commitTimeMicros: MICROS };
}

function insert(id: number): ReplicationMessage {
  return { kind: 'insert', relation, record: { id } };
}

function message(transactional: boolean): ReplicationMessage {
  return {
    kind: 'message',
    transactional,
    lsn: 4n,
    prefix: 'p',
    content: Buffer.from('hi'),
  };
}

const update: ReplicationMessage = {
  kind: 'update',
  relation,
  record: { id: 2 },
  unchanged: ['big'],
  old: { kind: 'key', record: { id: 1 } },
};

const remove: ReplicationMessage = {
  kind: 'delete',
  relation,
  old: { kind: 'full', record: { id: 2 } },
};

const truncate: ReplicationMessage = {
  kind: 'truncate',
  relations: [table('a'), table('b')],
  cascade: true,
  restartIdentity: false,
};

/** What belongs to no transaction. */
const aside: ReplicationMessage[] = [
  { kind: 'relation', relation },
  { kind: 'type', oid: 20_000, schema: 'public', name: 'mood' },
  { kind: 'origin', lsn: 1n, name: 'elsewhere' },
  { kind: 'abort', xid: 9, subxid: 10 },
];

function assembler(
  options: {
    skipThrough?: Lsn;
    passOver?: PassOrder;
    schema?: SchemaWatch;
    maxTransactionBytes?: number;
    maxMessageBytes?: number;
    messages?: boolean;
  } = {},
): Assembler {
  return new Assembler({
    pipeline: 'orders',
    slotName: 'orders_slot',
    maxTransactionBytes: options.maxTransactionBytes ?? 1000,
    maxMessageBytes: options.maxMessageBytes ?? 1000,
    messages: options.messages ?? true,
    skipThrough: options.skipThrough ?? null,
    passOver: options.passOver ?? null,
    schema: options.schema ?? new SchemaWatch(new RelationHistory(), () => {}),
    drained: () => {},
  });
}

/** Feeds all, each of 10 bytes, and returns what came out. */
function feed(to: Assembler, ...messages: ReplicationMessage[]): Assembled[] {
  return messages.flatMap((one) => to.accept(one, 10) ?? []);
}

function lastOf(to: Assembler, ...messages: ReplicationMessage[]): unknown {
  return feed(to, ...messages).at(-1);
}

describe('grouping', () => {
  it('gives a transaction at its commit with all that came between', () => {
    const assembled = feed(
      assembler(),
      begin(100n, 4_000_000_000),
      insert(1),
      update,
      remove,
      commit(100n, 120n),
    );
    const change = {
      relation: 'public.t',
      schema: 'public',
      table: 't',
      commitLsn: 100n,
      columns: relation.columns,
    };
    expect(assembled).toEqual([
      {
        kind: 'transaction',
        changes: 3,
        bytes: 30,
        end: 120n,
        shapes: [],
        transaction: {
          pipeline: 'orders',
          slotName: 'orders_slot',
          xid: 4_000_000_000,
          commitLsn: 100n,
          commitEndLsn: 120n,
          commitTime: new Date('2026-01-02T03:04:05.123Z'),
          commitTimeMicros: MICROS,
          changes: [
            { ...change, op: 'insert', ordinal: 0, record: { id: 1 } },
            {
              ...change,
              op: 'update',
              ordinal: 1,
              record: { id: 2 },
              unchanged: ['big'],
              old: { kind: 'key', record: { id: 1 } },
            },
            {
              ...change,
              op: 'delete',
              ordinal: 2,
              old: { kind: 'full', record: { id: 2 } },
            },
          ],
          messages: [],
        },
      },
    ]);
  });

  it('makes one change of each relation of a truncate, in the place where it ran (Q01, Q02)', () => {
    const together = ['public.a', 'public.b'];
    const truncated = {
      op: 'truncate',
      cascade: true,
      restartIdentity: false,
      together,
    };
    expect(
      lastOf(
        assembler(),
        begin(1n),
        insert(1),
        truncate,
        insert(2),
        commit(1n, 2n),
      ),
    ).toMatchObject({
      transaction: {
        changes: [
          { op: 'insert', ordinal: 0 },
          { ...truncated, relation: 'public.a', ordinal: 1 },
          { ...truncated, relation: 'public.b', ordinal: 2 },
          { op: 'insert', ordinal: 3 },
        ],
      },
    });
  });

  it('counts changes and messages together, from 0 in each transaction', () => {
    const all = feed(
      assembler(),
      begin(1n),
      insert(1),
      message(true),
      insert(2),
      commit(1n, 2n),
      begin(3n),
      message(true),
      commit(3n, 4n),
    );
    expect(all).toMatchObject([
      {
        transaction: {
          changes: [{ ordinal: 0 }, { ordinal: 2 }],
          messages: [
            {
              transactional: true,
              lsn: 4n,
              prefix: 'p',
              content: Buffer.from('hi'),
              ordinal: 1,
            },
          ],
        },
      },
      { transaction: { changes: [], messages: [{ ordinal: 0 }] } },
    ]);
  });

  it('gives a message outside transactions at once, and counts it nowhere', () => {
    const all = feed(
      assembler({ skipThrough: 100n }),
      message(false),
      begin(101n),
      message(true),
      commit(101n, 102n),
      message(false),
    );
    const alone = {
      kind: 'message',
      message: {
        transactional: false,
        lsn: 4n,
        prefix: 'p',
        content: Buffer.from('hi'),
        ordinal: null,
      },
      bytes: 10,
    };
    expect(all).toMatchObject([
      alone,
      { kind: 'transaction', transaction: { messages: [{ ordinal: 0 }] } },
      alone,
    ]);
  });

  it('delivers neighbours of which one ends where the next commits (A11)', () => {
    const all = feed(
      assembler(),
      begin(100n),
      insert(1),
      commit(100n, 120n),
      begin(120n),
      insert(2),
      commit(120n, 140n),
    );
    expect(all).toMatchObject([
      { transaction: { commitLsn: 100n, commitEndLsn: 120n } },
      { transaction: { commitLsn: 120n, commitEndLsn: 140n } },
    ]);
  });

  it('takes relation, type, origin and the abort of what was never sent anywhere, as nothing', () => {
    expect(
      feed(
        assembler(),
        ...aside,
        begin(1n),
        ...aside,
        commit(1n, 2n),
        ...aside,
      ),
    ).toEqual([{ kind: 'empty', commitLsn: 1n, endLsn: 2n }]);
  });
});

describe('the watermark', () => {
  it('skips what commits at it or below, and delivers what commits above', () => {
    const kinds = feed(
      assembler({ skipThrough: 100n }),
      begin(99n),
      insert(1),
      message(true),
      commit(99n, 100n),
      begin(100n),
      commit(100n, 101n),
      begin(101n),
      insert(2),
      commit(101n, 102n),
    );
    expect(kinds).toMatchObject([
      { kind: 'skipped', commitLsn: 99n, endLsn: 100n },
      { kind: 'skipped', commitLsn: 100n, endLsn: 101n },
      { kind: 'transaction' },
    ]);
  });

  it('holds nothing of what it skips, however large', () => {
    const skipping = assembler({ skipThrough: 5n, maxTransactionBytes: 15 });
    feed(skipping, begin(5n), insert(1), insert(2), truncate);
    expect(skipping).toMatchObject({ open: true, openBytes: 0 });
    expect(feed(skipping, commit(5n, 6n))).toMatchObject([{ kind: 'skipped' }]);
  });
});

describe('an order to pass over', () => {
  const order: PassOrder = { of: 'transaction', lsn: 100n };
  const three = [99n, 100n, 101n].flatMap((lsn) => [
    begin(lsn),
    insert(1),
    commit(lsn, lsn + 1n),
  ]);

  it('leaves out the transaction that commits exactly there, in its place', () => {
    expect(feed(assembler({ passOver: order }), ...three)).toMatchObject([
      { kind: 'transaction', end: 100n },
      { kind: 'passed-over', endLsn: 101n },
      { kind: 'transaction', end: 102n },
    ]);
  });

  it('of a message does not mean the transaction whose commit begins where the message ends', () => {
    const passOver: PassOrder = { of: 'message', lsn: 100n };
    expect(feed(assembler({ passOver }), ...three)).toMatchObject([
      { kind: 'transaction' },
      { kind: 'transaction' },
      { kind: 'transaction' },
    ]);
  });

  it('leaves out the message outside transactions at exactly that position, and no other', () => {
    const passOver: PassOrder = { of: 'message', lsn: 100n };
    const passing = assembler({ passOver });
    const at = (lsn: Lsn): ReplicationMessage => ({
      kind: 'message',
      transactional: false,
      lsn,
      prefix: '',
      content: Buffer.alloc(0),
    });
    expect(feed(passing, at(99n), at(100n), at(101n))).toMatchObject([
      { kind: 'message', message: { lsn: 99n } },
      { kind: 'passed-over', endLsn: 100n },
      { kind: 'message', message: { lsn: 101n } },
    ]);
    expect(feed(assembler({ passOver: order }), at(100n))).toMatchObject([
      { kind: 'message' },
    ]);
  });

  it('says nothing of what the watermark covers', () => {
    const both = assembler({ passOver: order, skipThrough: 100n });
    expect(feed(both, ...three)).toMatchObject([
      { kind: 'skipped' },
      { kind: 'skipped' },
      { kind: 'transaction' },
    ]);
  });

  it('holds nothing of it, however large', () => {
    const passing = assembler({ passOver: order, maxTransactionBytes: 15 });
    feed(passing, begin(100n), insert(1), insert(2), truncate, message(true));
    expect(passing).toMatchObject({ open: true, openBytes: 0 });
    expect(feed(passing, commit(100n, 101n))).toEqual([
      { kind: 'passed-over', endLsn: 101n },
    ]);
  });

  it('asks about a schema change that it brings when the next row of the table comes', () => {
    const schema = new SchemaWatch(new RelationHistory(), () => {});
    const passing = assembler({ passOver: order, schema });
    const changed = { ...table('t'), columns: [] };
    const row: ReplicationMessage = {
      kind: 'insert',
      relation: changed,
      record: {},
    };
    const assembled = feed(
      passing,
      begin(99n),
      { kind: 'relation', relation },
      insert(1),
      commit(99n, 100n),
      begin(100n),
      { kind: 'relation', relation: changed },
      row,
      commit(100n, 101n),
      begin(101n),
      row,
    );
    expect(assembled).toMatchObject([
      { kind: 'transaction' },
      { kind: 'passed-over' },
      {
        kind: 'schema-change',
        fault: { commitLsn: 101n, changes: [{ change: 'column_dropped' }] },
      },
    ]);
  });
});

describe('a shape that the stream goes on with', () => {
  const changed = { ...table('t'), columns: [] };
  const row: ReplicationMessage = {
    kind: 'insert',
    relation: changed,
    record: {},
  };

  it('is compared with the one that is known when its next row comes, and no other', () => {
    const subject = assembler();
    feed(
      subject,
      begin(5n),
      { kind: 'relation', relation },
      insert(1),
      commit(5n, 6n),
    );
    subject.goOnWith([changed]);
    expect(
      feed(subject, begin(10n), insert(2), commit(10n, 11n), begin(20n), row),
    ).toMatchObject([
      { kind: 'transaction' },
      {
        kind: 'schema-change',
        fault: { commitLsn: 20n, changes: [{ change: 'column_dropped' }] },
      },
    ]);
  });

  it('is no change when it is the one that is known', () => {
    const subject = assembler();
    const same = table('t');
    feed(
      subject,
      begin(5n),
      { kind: 'relation', relation },
      insert(1),
      commit(5n, 6n),
    );
    subject.goOnWith([same]);
    expect(
      feed(
        subject,
        begin(10n),
        { kind: 'insert', relation: same, record: { id: 2 } },
        commit(10n, 11n),
      ),
    ).toMatchObject([{ kind: 'transaction' }]);
  });
});

describe('what it holds', () => {
  it('counts the payload of the open transaction', () => {
    const counting = assembler();
    const seen = [
      begin(1n),
      insert(1),
      ...aside,
      truncate,
      message(true),
      commit(1n, 2n),
      begin(3n),
    ].map((one) => {
      counting.accept(one, 10);
      return [counting.open, counting.openBytes];
    });
    expect(seen).toEqual([
      [true, 0],
      [true, 10],
      ...aside.map(() => [true, 10]),
      [true, 20],
      [true, 30],
      [false, 0],
      [true, 0],
    ]);
  });

  it('hands a transaction over with the change that is one too many, and holds nothing of it any more', () => {
    const small = assembler({ maxTransactionBytes: 20 });
    expect(feed(small, begin(1n), insert(1), insert(2))).toEqual([]);
    expect(small.accept(insert(3), 10)).toMatchObject({
      kind: 'arriving',
      transaction: { xid: 7, commitLsn: 1n, commitEndLsn: null, messages: [] },
      arrival: { bytes: 30, count: 3, complete: false },
    });
    expect(small).toMatchObject({ open: true, openBytes: 0 });
    expect(feed(small, insert(4), message(true))).toEqual([]);
    expect(small.openBytes).toBe(10);
    expect(small.accept(commit(1n, 2n), 10)).toEqual({
      kind: 'arrived',
      end: 2n,
    });
    expect(small).toMatchObject({ open: false, openBytes: 0 });
  });

  it('refuses messages that grow too large, before and after the changes are handed over', () => {
    const limits = { maxTransactionBytes: 20, maxMessageBytes: 20 };
    const early = assembler(limits);
    const late = assembler(limits);
    feed(late, begin(1n), insert(1), insert(2), insert(3));
    const messages = [message(true), message(true), message(true)];
    const fault = {
      kind: 'fault',
      code: 'transaction_too_large',
      detail:
        'the messages of the transaction hold more than maxInflightBytes (20)',
      lsn: 1n,
    };
    expect(feed(early, begin(1n), ...messages)).toEqual([fault]);
    expect(feed(late, ...messages)).toEqual([fault]);
    expect(early.openBytes).toBe(0);
    expect(late.openBytes).toBe(0);
  });

  it('hands a transaction over once, also when its messages alone are as large', () => {
    const small = assembler({ maxTransactionBytes: 20 });
    const four = [message(true), message(true), message(true), message(true)];
    expect(
      feed(small, begin(1n), insert(1), ...four, insert(2), commit(1n, 2n)),
    ).toMatchObject([
      { kind: 'arriving', arrival: { count: 2 } },
      { kind: 'arrived' },
    ]);
  });

  it('gives what it hands over all that a whole transaction has, once it is read', async () => {
    const small = assembler({ maxTransactionBytes: 20 });
    const head = [begin(100n), insert(1), message(true), insert(2)];
    const tail = [update, message(true), remove, truncate, commit(100n, 120n)];
    const [whole] = feed(assembler(), ...head, ...tail);
    const [arriving] = feed(small, ...head, ...tail);
    if (whole?.kind !== 'transaction' || arriving?.kind !== 'arriving')
      throw new Error('not as they should be');
    const { transaction } = arriving;
    expect(JSON.parse(JSON.stringify(transaction))).toMatchObject({
      commitEndLsn: null,
      changes: null,
    });
    const changes = [];
    for await (const change of transaction.changes) changes.push(change);
    expect({ ...transaction, changes }).toEqual({ ...whole.transaction });
  });

  it.each<[string, (to: Assembler) => void]>([
    ['when it is cut', (to) => to.cut(new ConnectionFault('cut'))],
    ['when an impossible message comes', (to) => void feed(to, begin(9n))],
  ])('tells the reader %s', async (_, end) => {
    const small = assembler({ maxTransactionBytes: 5 });
    const [arriving] = feed(small, begin(1n), insert(1));
    if (arriving?.kind !== 'arriving') throw new Error('not as it should be');
    end(small);
    await expect(arriving.arrival.ended).rejects.toThrow(ConnectionFault);
    expect(arriving.arrival.bytes).toBe(0);
    expect(small.open).toBe(false);
  });

  it('allows each transaction its own size', () => {
    const small = assembler({ maxTransactionBytes: 20 });
    const two = [insert(1), insert(2)];
    expect(
      feed(
        small,
        begin(1n),
        ...two,
        commit(1n, 2n),
        begin(3n),
        ...two,
        commit(3n, 4n),
      ),
    ).toMatchObject([{ bytes: 20 }, { bytes: 20 }]);
  });
});

describe('an impossible order', () => {
  it.each<[string, ReplicationMessage[], Lsn | undefined]>([
    ['insert before begin', [insert(1)], undefined],
    ['update before begin', [update], undefined],
    ['delete before begin', [remove], undefined],
    ['truncate before begin', [truncate], undefined],
    ['message before begin', [message(true)], undefined],
    [
      'a message outside transactions before commit',
      [begin(1n), message(false)],
      1n,
    ],
    ['commit before begin', [commit(1n, 2n)], undefined],
    ['insert before begin', [begin(1n), commit(1n, 2n), insert(1)], undefined],
    ['begin before commit', [begin(1n), begin(2n)], 1n],
    [
      'commit at 0/2 of a transaction that began for 0/1',
      [begin(1n), commit(2n, 3n)],
      1n,
    ],
    ['a commit that ends before it starts', [begin(2n), commit(2n, 2n)], 2n],
    [
      'a transaction that commits at 0/5 after one at 0/5',
      [begin(5n), commit(5n, 6n), begin(5n)],
      undefined,
    ],
    [
      'a transaction that commits at 0/4 after one at 0/5',
      [begin(5n), commit(5n, 6n), begin(4n)],
      undefined,
    ],
  ])('is refused: %s', (detail, messages, lsn) => {
    expect(lastOf(assembler(), ...messages)).toEqual({
      kind: 'fault',
      code: 'protocol_violation',
      detail,
      ...(lsn === undefined ? {} : { lsn }),
    });
  });

  it('is refused among skipped transactions too', () => {
    const skipping = assembler({ skipThrough: 10n });
    expect(
      lastOf(skipping, begin(5n), commit(5n, 6n), begin(5n)),
    ).toMatchObject({ code: 'protocol_violation' });
  });

  it.each<[string, ReplicationMessage[]]>([
    ['outside a transaction', [message(false)]],
    ['of a transaction', [begin(1n), message(true)]],
  ])('refuses a message %s that was not asked for', (_, messages) => {
    expect(lastOf(assembler({ messages: false }), ...messages)).toMatchObject({
      kind: 'fault',
      code: 'unsupported_message',
      detail: 'a message that was not asked for',
    });
  });

  it('answers everything after a fault with that fault', () => {
    const failed = assembler();
    const [fault] = feed(failed, insert(1));
    const later = feed(failed, begin(1n), ...aside, insert(1), commit(1n, 2n));
    expect(later).toHaveLength(3 + aside.length);
    expect(new Set(later)).toEqual(new Set([fault]));
    expect(failed).toMatchObject({ open: false, openBytes: 0 });
  });
});

describe('JSON', () => {
  it('prints transaction, changes and messages with positions as text', () => {
    const [assembled] = feed(
      assembler(),
      begin(0x16_b374_d848n),
      insert(1),
      update,
      remove,
      truncate,
      message(true),
      commit(0x16_b374_d848n, 0x16_b374_d878n),
    );
    if (assembled?.kind !== 'transaction') throw new Error('no transaction');
    const commitLsn = '16/B374D848';
    const common = {
      relation: 'public.t',
      schema: 'public',
      table: 't',
      commitLsn,
      columns: relation.columns,
    };
    const truncated = {
      ...common,
      op: 'truncate',
      cascade: true,
      restartIdentity: false,
      together: ['public.a', 'public.b'],
    };
    expect(JSON.parse(JSON.stringify(assembled.transaction))).toEqual({
      pipeline: 'orders',
      slotName: 'orders_slot',
      xid: 7,
      commitLsn,
      commitEndLsn: '16/B374D878',
      commitTime: '2026-01-02T03:04:05.123Z',
      commitTimeMicros: '1767323045123456',
      changes: [
        { ...common, op: 'insert', ordinal: 0, record: { id: 1 } },
        {
          ...common,
          op: 'update',
          ordinal: 1,
          record: { id: 2 },
          unchanged: ['big'],
          old: { kind: 'key', record: { id: 1 } },
        },
        {
          ...common,
          op: 'delete',
          ordinal: 2,
          old: { kind: 'full', record: { id: 2 } },
        },
        { ...truncated, ordinal: 3, relation: 'public.a', table: 'a' },
        { ...truncated, ordinal: 4, relation: 'public.b', table: 'b' },
      ],
      messages: [
        {
          transactional: true,
          lsn: '0/4',
          prefix: 'p',
          content: { type: 'Buffer', data: [0x68, 0x69] },
          ordinal: 5,
        },
      ],
    });
  });
});

describe('the shape of changes', () => {
  it('has its own fields in one order for each operation', () => {
    const [assembled] = feed(
      assembler(),
      begin(1n),
      insert(1),
      update,
      remove,
      truncate,
      commit(1n, 2n),
    );
    if (assembled?.kind !== 'transaction') throw new Error('no transaction');
    const common = 'op relation schema table ordinal commitLsn columns'.split(
      ' ',
    );
    expect(
      changesOf(assembled.transaction).map((change) => Object.keys(change)),
    ).toEqual([
      [...common, 'record'],
      [...common, 'record', 'unchanged', 'old'],
      [...common, 'old'],
      [...common, 'cascade', 'restartIdentity', 'together'],
      [...common, 'cascade', 'restartIdentity', 'together'],
    ]);
  });
});
