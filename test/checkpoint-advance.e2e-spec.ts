import { describe, expect, it } from 'vitest';
import { CheckpointIdentityError } from '../lib/engine/checkpoint/checkpoint-identity-error.js';
import type { CheckpointQuery } from '../lib/engine/checkpoint/checkpoint-query.js';
import {
  connectedTable,
  OTHER_SOURCE,
  pooled,
  SOURCE,
  through,
  transaction,
  untilBlocked,
} from './support/checkpoint-tables.js';
import { useServer } from './support/suite.js';

const suite = useServer();

describe('advance', () => {
  it('is true for the first transaction and stores what it was given', async () => {
    const database = await suite.database();
    const source = { ...SOURCE, timeline: 3 };
    const table = await connectedTable(database, { source });
    expect(await table.load()).toBeNull();
    const tx = transaction(0xffff_ffff_ffff_ff00n, 0xffff_ffff_ffff_fff8n);
    expect(await table.advance(pooled(database), tx)).toBe(true);
    expect(table.advancedTo).toBe(tx.commitLsn);
    expect(await table.load()).toEqual({
      commitLsn: tx.commitLsn,
      confirmedLsn: tx.commitEndLsn,
      ...source,
      relations: null,
      progress: null,
    });
    expect(table.advancedTo).toBeNull();
  });

  it.each([
    ['the same transaction', 0x100n],
    ['an earlier one', 0xf0n],
    ['one inside its record', 0x11fn],
  ])('is false after a transaction for %s', async (_, commitLsn) => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.advance(pooled(database), transaction(0x100n, 0x120n));
    const stored = await table.load();
    const tx = transaction(commitLsn, commitLsn + 0x20n);
    expect(await table.advance(pooled(database), tx)).toBe(false);
    expect(table.advancedTo).toBeNull();
    expect(await table.load()).toEqual(stored);
  });

  it('is true after a transaction for the one that begins at its end, and for later ones', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    for (const commitLsn of [0x100n, 0x120n, 0x140n, 0x1_0000_0000n]) {
      const tx = transaction(commitLsn, commitLsn + 0x20n);
      expect(await table.advance(pooled(database), tx)).toBe(true);
      expect(table.advancedTo).toBe(commitLsn);
    }
    expect(await table.load()).toMatchObject({
      commitLsn: 0x1_0000_0000n,
      confirmedLsn: 0x1_0000_0020n,
    });
  });

  it.each([
    ['false', 'below', 0x2ffn],
    ['true', 'that begins there', 0x300n],
    ['true', 'above', 0x301n],
  ])(
    'is %s after a boundary for a transaction %s',
    async (expected, _, commitLsn) => {
      const database = await suite.database();
      const table = await connectedTable(database);
      await table.confirm(0x300n);
      const tx = transaction(commitLsn, commitLsn + 0x20n);
      expect(String(await table.advance(pooled(database), tx))).toBe(expected);
    },
  );

  it('goes by the commit alone after a transaction whose end was not known', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    const tx = transaction(0x100n, null);
    expect(await table.advance(pooled(database), tx)).toBe(true);
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: null,
    });
    expect(await table.advance(pooled(database), tx)).toBe(false);
    const next = transaction(0x101n, null);
    expect(await table.advance(pooled(database), next)).toBe(true);
  });

  it('leaves the boundary when the end is not known', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.confirm(0x100n);
    await table.advance(pooled(database), transaction(0x100n, null));
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x100n,
    });
  });

  it('takes over the timeline and the time of the write, and leaves the relations', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.advance(pooled(database), transaction(0x10n, 0x20n));
    await database.query(
      `UPDATE replicant_checkpoints SET updated_at = 'epoch', relations = '{"kept": 1}'`,
    );
    const promoted = await connectedTable(database, {
      source: { ...SOURCE, timeline: 2 },
    });
    await promoted.advance(pooled(database), transaction(0x20n, 0x30n));
    expect(
      await database.query(
        `SELECT timeline, relations, updated_at > now() - interval '1 minute' AS fresh FROM replicant_checkpoints`,
      ),
    ).toEqual([{ timeline: 2, relations: { kept: 1 }, fresh: true }]);
  });

  it('is undone with the transaction it runs in, for the first row and for a later one', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    const client = await database.connect();
    const tx = transaction(0x40n, 0x50n);
    const undone = async (): Promise<unknown> => {
      await client.query('BEGIN');
      expect(await table.advance(through(client), tx)).toBe(true);
      await client.query('ROLLBACK');
      return table.load();
    };
    expect(await undone()).toBeNull();
    await table.advance(pooled(database), transaction(0x10n, 0x20n));
    expect(await undone()).toMatchObject({
      commitLsn: 0x10n,
      confirmedLsn: 0x20n,
    });
    expect(await table.advance(pooled(database), tx)).toBe(true);
  });

  it('takes rows and objects that hold rows', async () => {
    const database = await suite.database();
    const client = await database.connect();
    const asRows: CheckpointQuery = async (sql, values) => {
      const { rows } = await client.query<Record<string, unknown>>(sql, values);
      return rows;
    };
    const tx = transaction(0x10n, 0x20n);
    const table = await connectedTable(database, { query: through(client) });
    expect(await table.advance(through(client), tx)).toBe(true);
    const again = await connectedTable(database, { query: asRows });
    expect(await again.load()).toMatchObject({ commitLsn: 0x10n });
    expect(await again.advance(asRows, tx)).toBe(false);
  });
});

describe('confirm', () => {
  it('stores a boundary without a transaction', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.confirm(0x1_0000_0000n);
    expect(await table.load()).toEqual({
      commitLsn: null,
      confirmedLsn: 0x1_0000_0000n,
      ...SOURCE,
      relations: null,
      progress: null,
    });
    expect(table.advancedTo).toBeNull();
  });

  it('never moves backwards, and then writes nothing', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.advance(pooled(database), transaction(0x100n, 0x120n));
    const read = 'SELECT xmin, * FROM replicant_checkpoints';
    const before = await database.query(read);
    await table.confirm(0x11fn);
    await table.confirm(0x120n);
    expect(await database.query(read)).toEqual(before);
    await table.confirm(0x121n);
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x121n,
    });
  });

  it('waits for an open delivery and then keeps the higher position', async () => {
    const database = await suite.database();
    const client = await database.connect();
    const table = await connectedTable(database);
    await client.query('BEGIN');
    await table.advance(through(client), transaction(0x100n, 0x120n));
    const confirmed = table.confirm(0x110n);
    await untilBlocked(database);
    await client.query('COMMIT');
    await confirmed;
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x120n,
    });
  });
});

describe('a row of a later timeline', () => {
  it('fences a process that still reads the old primary, however far that has gone on; the new one goes on', async () => {
    const database = await suite.database();
    const old = await connectedTable(database);
    const promoted = await connectedTable(database, {
      source: { ...SOURCE, timeline: 2 },
    });
    expect(
      await old.advance(pooled(database), transaction(0x100n, 0x120n)),
    ).toBe(true);
    expect(
      await promoted.advance(pooled(database), transaction(0x200n, 0x220n)),
    ).toBe(true);
    const rows = await database.query('SELECT * FROM replicant_checkpoints');
    for (const lsn of [0x200n, 0x300n]) {
      await expect(
        old.advance(pooled(database), transaction(lsn, lsn + 1n)),
      ).rejects.toThrow(CheckpointIdentityError);
      await expect(old.confirm(lsn)).rejects.toThrow(CheckpointIdentityError);
    }
    expect(await database.query('SELECT * FROM replicant_checkpoints')).toEqual(
      rows,
    );
    expect(
      await promoted.advance(pooled(database), transaction(0x300n, 0x320n)),
    ).toBe(true);
  });
});

it('a row of any timeline is written from a standby, which does not tell its own', async () => {
  const database = await suite.database();
  const primary = await connectedTable(database);
  await primary.advance(pooled(database), transaction(0x100n, 0x120n));
  const standby = await connectedTable(database, {
    source: { ...SOURCE, timeline: 0 },
  });
  for (const [lsn, isNew] of [
    [0x200n, true],
    [0x200n, false],
  ] as const)
    expect(
      await standby.advance(pooled(database), transaction(lsn, lsn + 1n)),
    ).toBe(isNew);
  expect(await primary.load()).toMatchObject({ timeline: 0 });
});

describe('a row of another server', () => {
  it('makes both throw, whatever the positions are, and stays as it is', async () => {
    const database = await suite.database();
    const foreign = await connectedTable(database, { source: OTHER_SOURCE });
    await foreign.advance(pooled(database), transaction(0x100n, 0x120n));
    const read = 'SELECT xmin, * FROM replicant_checkpoints';
    const table = await connectedTable(database);
    const client = await database.connect();
    for (const lsn of [0x10n, 0x100n, 0x200n]) {
      const before = await database.query(read);
      await client.query('BEGIN');
      await expect(
        table.advance(through(client), transaction(lsn, lsn + 1n)),
      ).rejects.toThrow(CheckpointIdentityError);
      await client.query('ROLLBACK');
      expect(await database.query(read)).toEqual(before);

      const withoutTransaction = 'SELECT * FROM replicant_checkpoints';
      const rows = await database.query(withoutTransaction);
      await expect(
        table.advance(pooled(database), transaction(lsn, lsn + 1n)),
      ).rejects.toThrow(CheckpointIdentityError);
      await expect(table.confirm(lsn)).rejects.toThrow(CheckpointIdentityError);
      expect(await database.query(withoutTransaction)).toEqual(rows);
    }
    expect(table.advancedTo).toBeNull();
    expect(await table.load()).toMatchObject(OTHER_SOURCE);
  });

  it('is noticed when it is the first and was written at the same moment', async () => {
    const database = await suite.database();
    const ours = await database.connect();
    const theirs = await database.connect();
    const foreign = await connectedTable(database, { source: OTHER_SOURCE });
    const table = await connectedTable(database);
    const tx = transaction(0x100n, 0x120n);
    await theirs.query('BEGIN');
    await foreign.advance(through(theirs), tx);
    const advance = table.advance(through(ours), tx);
    const outcome = advance.catch((error: unknown) => error);
    await untilBlocked(database);
    await theirs.query('COMMIT');
    expect(await outcome).toBeInstanceOf(CheckpointIdentityError);
  });
});
