import { describe, expect, it } from 'vitest';
import { ReplicantConfigError } from '../options/config-error.js';
import { CheckpointIdentityError } from './checkpoint-identity-error.js';
import type {
  CheckpointQuery,
  CheckpointQueryResult,
} from './checkpoint-query.js';
import { CheckpointTable } from './checkpoint-table.js';

const SERVER = { systemIdentifier: '7000000000000000001', timeline: 1 };
const ORDERS = { pipeline: 'orders', slotName: 'orders_slot' };
const TX = {
  slotName: 'orders_slot',
  commitLsn: 0x1_0000_0010n,
  commitEndLsn: 0x1_0000_0040n,
};
const NOTHING_STORED = {
  server: null,
  timeline: null,
  committed: null,
  confirmed: null,
  relations: null,
  progress: null,
};

/** Answers the statements of a table that exists and holds no row. */
function answerLoad(sql: string): Promise<CheckpointQueryResult> {
  return Promise.resolve(
    sql.includes('to_regclass')
      ? [{ oid: '16384', name: 'public.c' }]
      : [NOTHING_STORED],
  );
}

/** Answers that the row was not written, and whose it is. */
function notWritten(owner: string): CheckpointQuery {
  return (sql) =>
    Promise.resolve([
      {
        ...NOTHING_STORED,
        server: sql.startsWith('WITH') ? null : owner,
        timeline: '1',
      },
    ]);
}

/** A database that must not be asked. */
function refuse(): never {
  throw new Error('asked');
}

async function connected(table: CheckpointTable): Promise<CheckpointTable> {
  table.bindTo(ORDERS);
  table.identify({ ...ORDERS, ...SERVER });
  await table.load();
  return table;
}

describe('CheckpointTable', () => {
  describe('its table name', () => {
    it.each([
      ['empty', ''],
      ['with a NUL byte', 'sec\0ret'],
      ['too long', 'secret'.repeat(11)],
      ['too long in bytes', `secret${'é'.repeat(29)}`],
    ])('is refused when %s, and not repeated', (_, table) => {
      const create = (): CheckpointTable =>
        new CheckpointTable(answerLoad, { table });
      expect(create).toThrow(ReplicantConfigError);
      expect(create).not.toThrow(/sec|ret|é/);
    });

    it('goes to the server quoted', async () => {
      const asked: unknown[][] = [];
      const table = new CheckpointTable(
        (sql, values) => {
          asked.push(values);
          return answerLoad(sql);
        },
        { table: 'a"; DROP TABLE b; --' },
      );
      await connected(table);
      expect(asked[0]).toEqual(['"a""; DROP TABLE b; --"']);
    });
  });

  describe('binding', () => {
    it('serves one pipeline only', () => {
      const table = new CheckpointTable(answerLoad);
      table.bindTo(ORDERS);
      table.bindTo({ ...ORDERS });
      expect(() => table.bindTo({ ...ORDERS, slotName: 'audit_slot' })).toThrow(
        /serves one pipeline.*orders_slot.*audit_slot/,
      );
      expect(() => table.bindTo({ ...ORDERS, pipeline: 'audit' })).toThrow(
        /serves one pipeline/,
      );
    });

    it('keeps the first pipeline after a refused one', async () => {
      const table = await connected(new CheckpointTable(answerLoad));
      expect(() =>
        table.identify({ ...SERVER, pipeline: 'orders', slotName: 'other' }),
      ).toThrow(/serves one pipeline/);
      await expect(
        table.advance(
          () => Promise.resolve([{ server: SERVER.systemIdentifier }]),
          TX,
        ),
      ).resolves.toBe(true);
    });

    it('is required by every method that touches a row', async () => {
      const table = new CheckpointTable(answerLoad);
      await expect(table.load()).rejects.toThrow(/belongs to no pipeline/);
      await expect(table.confirm(1n)).rejects.toThrow(/belongs to no pipeline/);
      await expect(table.advance(answerLoad, TX)).rejects.toThrow(
        /belongs to no pipeline/,
      );
    });

    it.each([
      ['identified', false],
      ['read', true],
    ])('refuses writes before the checkpoint was %s', async (_, identified) => {
      const table = new CheckpointTable(answerLoad);
      table.bindTo(ORDERS);
      if (identified) table.identify({ ...ORDERS, ...SERVER });
      else await table.load();
      await expect(table.advance(answerLoad, TX)).rejects.toThrow(
        /before pipeline orders has connected/,
      );
      await expect(table.confirm(1n)).rejects.toThrow(
        /before pipeline orders has connected/,
      );
    });
  });

  describe('advance', () => {
    it('sends one statement with text and null only', async () => {
      const table = await connected(new CheckpointTable(answerLoad));
      const sent: unknown[][] = [];
      await table.advance(
        (_, values) => {
          sent.push(values);
          return Promise.resolve({
            rows: [{ server: SERVER.systemIdentifier }],
          });
        },
        { ...TX, commitEndLsn: null },
      );
      expect(sent).toEqual([
        [
          'orders_slot',
          SERVER.systemIdentifier,
          '1',
          null,
          '1/10',
          null,
          '1/10',
        ],
      ]);
    });

    it('refuses a transaction of another slot before it asks the database', async () => {
      const table = await connected(new CheckpointTable(answerLoad));
      await expect(
        table.advance(refuse, { ...TX, slotName: 'audit_slot' }),
      ).rejects.toThrow(
        /keeps slot orders_slot and was given a transaction of slot audit_slot/,
      );
    });

    it('throws when the row belongs to another server, never false', async () => {
      const table = await connected(new CheckpointTable(answerLoad));
      const advance = table.advance(notWritten('42'), TX);
      await expect(advance).rejects.toThrow(CheckpointIdentityError);
      await expect(advance).rejects.toThrow(
        /slot orders_slot .*another slotName/,
      );
      await expect(advance).rejects.not.toThrow(/42|700000/);
      expect(table.advancedTo).toBeNull();
    });

    it('remembers the last transaction that was new', async () => {
      const table = await connected(new CheckpointTable(answerLoad));
      expect(table.advancedTo).toBeNull();
      await table.advance(
        () => Promise.resolve([{ server: SERVER.systemIdentifier }]),
        TX,
      );
      expect(table.advancedTo).toBe(TX.commitLsn);
      const later = { ...TX, commitLsn: TX.commitLsn + 0x100n };
      await expect(
        table.advance(notWritten(SERVER.systemIdentifier), later),
      ).resolves.toBe(false);
      expect(table.advancedTo).toBe(TX.commitLsn);
      await table.load();
      expect(table.advancedTo).toBeNull();
    });

    it.each<[string, unknown]>([
      ['nothing', undefined],
      ['null', null],
      ['a number of rows', 1],
      ['no rows', []],
      ['no rows in an object', { rows: [] }],
      ['rows and a count', [[{ server: null }], 1]],
      ['two rows', [{ server: null }, { server: null }]],
      ['rows as arrays', { rows: [[null]] }],
      ['rows under other names', [{ SERVER: null }]],
      ['a value that is not text', [{ server: 7 }]],
      ['a row alone', { server: null }],
    ])(
      'never reads "applied before" from a query function that returns %s',
      async (_, result) => {
        const table = await connected(new CheckpointTable(answerLoad));
        const query: unknown = () => Promise.resolve(result);
        await expect(advanceUntyped(table, query)).rejects.toThrow(
          /query function of CheckpointTable/,
        );
        expect(table.advancedTo).toBeNull();
      },
    );

    it('stores the end of a batch in one statement, by the first of it', async () => {
      const table = await connected(new CheckpointTable(answerLoad));
      const sent: unknown[][] = [];
      const batch = [
        TX,
        {
          ...TX,
          commitLsn: TX.commitLsn + 0x100n,
          commitEndLsn: TX.commitEndLsn + 0x100n,
        },
      ];
      expect(
        await table.advance((_, values) => {
          sent.push(values);
          return Promise.resolve([{ server: SERVER.systemIdentifier }]);
        }, batch),
      ).toEqual(batch);
      expect(sent).toEqual([
        [
          'orders_slot',
          SERVER.systemIdentifier,
          '1',
          null,
          '1/110',
          '1/140',
          '1/10',
        ],
      ]);
      expect(table.advancedTo).toBe(TX.commitLsn + 0x100n);
    });

    it.each([
      ['an empty batch', [], /empty batch/],
      [
        'a batch out of order',
        [{ ...TX, commitLsn: TX.commitLsn + 1n }, TX],
        /not in ascending order/,
      ],
      ['a batch that repeats itself', [TX, TX], /not in ascending order/],
      [
        'a batch with a transaction of another slot',
        [TX, { ...TX, slotName: 'audit_slot', commitLsn: 0x2_0000_0000n }],
        /keeps slot orders_slot and was given a transaction of slot audit_slot/,
      ],
    ])('refuses %s before it asks the database', async (_, batch, message) => {
      const table = await connected(new CheckpointTable(answerLoad));
      await expect(table.advance(refuse, batch)).rejects.toThrow(message);
      expect(table.advancedTo).toBeNull();
    });

    it('throws for a batch when the row belongs to another server', async () => {
      const table = await connected(new CheckpointTable(answerLoad));
      await expect(table.advance(notWritten('42'), [TX])).rejects.toThrow(
        CheckpointIdentityError,
      );
      expect(table.advancedTo).toBeNull();
    });

    it('says of a batch when its statements do not share a transaction', async () => {
      const table = await connected(new CheckpointTable(answerLoad));
      await expect(
        table.advance(notWritten(SERVER.systemIdentifier), [TX]),
      ).rejects.toThrow(/in one open transaction/);
      expect(table.advancedTo).toBeNull();
    });

    it('passes the failure of the query function on', async () => {
      const table = await connected(new CheckpointTable(answerLoad));
      const lost = new Error('connection lost');
      await expect(table.advance(() => Promise.reject(lost), TX)).rejects.toBe(
        lost,
      );
    });
  });

  describe('load', () => {
    it('passes the failure of the query function on and is read again', async () => {
      const lost = new Error('connection lost');
      let failing = true;
      const table = new CheckpointTable((sql) =>
        failing ? Promise.reject(lost) : answerLoad(sql),
      );
      table.bindTo(ORDERS);
      await expect(table.load()).rejects.toBe(lost);
      failing = false;
      await expect(table.load()).resolves.toBeNull();
    });

    it('never reads "nothing stored" from a query function that loses the row', async () => {
      const table = new CheckpointTable((sql) =>
        sql.includes('to_regclass') ? answerLoad(sql) : Promise.resolve([]),
      );
      table.bindTo(ORDERS);
      await expect(table.load()).rejects.toThrow(/did not return the one row/);
    });

    it('reports why the table could not be created', async () => {
      const denied = new Error('permission denied');
      const table = new CheckpointTable((sql) =>
        sql.startsWith('CREATE')
          ? Promise.reject(denied)
          : Promise.resolve([{ oid: null, name: 'public.c' }]),
      );
      table.bindTo(ORDERS);
      await expect(table.load()).rejects.toBe(denied);
    });

    it('says when a created table is not there', async () => {
      const table = new CheckpointTable(() =>
        Promise.resolve([{ oid: null, name: 'public.c' }]),
      );
      table.bindTo(ORDERS);
      await expect(table.load()).rejects.toThrow(
        /was created and is not there/,
      );
    });
  });
});

/** As a caller in JavaScript, where any function can be given. */
async function advanceUntyped(
  table: CheckpointTable,
  query: unknown,
): Promise<unknown> {
  const answer: unknown = await Reflect.apply(
    table.advance.bind(table),
    table,
    [query, TX],
  );
  return answer;
}
