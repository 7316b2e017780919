import { describe, expect, it } from 'vitest';
import type { StoredCheckpoint } from '../model/checkpoint.js';
import { CheckpointMovedError } from './checkpoint-moved-error.js';
import type { CheckpointQuery } from './checkpoint-query.js';
import { ProgressRow } from './progress-row.js';

const TARGET = {
  slotName: 'orders',
  systemIdentifier: '7',
  timeline: 3,
  statements: { begin: 'begin', move: 'move' },
};

/** A row, and what it was told to write. */
class Written {
  readonly row = new ProgressRow();
  readonly statements: [sql: string, ...values: unknown[]][] = [];
  /** What the database answers: whether it has written. */
  accepts = true;

  read(commitLsn: bigint | null, progress: string | null): this {
    const stored: StoredCheckpoint = {
      commitLsn,
      confirmedLsn: null,
      systemIdentifier: '7',
      timeline: 3,
      progress,
    };
    this.row.read(commitLsn === null && progress === null ? null : stored);
    return this;
  }

  readonly query: CheckpointQuery = async (sql, values) => {
    this.statements.push([sql, ...values.slice(3)]);
    return [{ server: this.accepts ? '7' : null }];
  };

  async write(progress: string): Promise<this> {
    await this.row.write(this.query, TARGET, progress);
    return this;
  }
}

describe('ProgressRow', () => {
  it('begins a row that holds nothing, and goes by what it has written from then on', async () => {
    const written = new Written().read(null, null);
    expect(written.row.progress).toBeNull();
    await written.write('a');
    await written.write('b');
    expect(written.statements).toEqual([
      ['begin', 'a'],
      ['move', 'b', 'a', null],
    ]);
    expect(written.row.progress).toBe('b');
  });

  it('writes the same a second time over what was there before the first', async () => {
    const written = new Written().read(null, null);
    await written.write('a');
    await written.write('a');
    await written.write('b');
    await written.write('b');
    expect(written.statements.slice(1)).toEqual([
      ['begin', 'a'],
      ['move', 'b', 'a', null],
      ['move', 'b', 'a', null],
    ]);
  });

  it('goes by the transaction that the row was advanced to last', async () => {
    const written = new Written().read(0x10n, 'a');
    await written.write('b');
    written.row.advanced(0x20n);
    await written.write('c');
    expect(written.statements).toEqual([
      ['move', 'b', 'a', '0/10'],
      ['move', 'c', 'b', '0/20'],
    ]);
  });

  it('takes what was rolled back for not written when it is read again', async () => {
    const written = new Written().read(0x10n, 'a');
    await written.write('b');
    written.row.advanced(0x20n);
    written.read(0x10n, 'a');
    expect(written.row.progress).toBe('a');
    await written.write('c');
    expect(written.statements.at(-1)).toEqual(['move', 'c', 'a', '0/10']);
  });

  it('takes what was committed for written when it is read again', async () => {
    const written = new Written().read(0x10n, 'a');
    await written.write('b');
    written.read(0x10n, 'b');
    expect(written.row.progress).toBe('b');
    await written.write('b');
    expect(written.statements.at(-1)).toEqual(['move', 'b', 'b', '0/10']);
  });

  it.each([
    ['progress', 0x10n, 'other'],
    ['a transaction', 0x30n, 'a'],
    ['neither, since it is gone', null, null],
  ])(
    'refuses without a statement when %s of another process is read, until it is forgotten',
    async (_, commitLsn, progress) => {
      const written = new Written().read(0x10n, 'a');
      written.read(commitLsn, progress);
      await expect(written.write('b')).rejects.toBeInstanceOf(
        CheckpointMovedError,
      );
      // What the other has written is not where this process stood.
      written.read(commitLsn, progress);
      await expect(written.write('b')).rejects.toBeInstanceOf(
        CheckpointMovedError,
      );
      expect(written.statements).toEqual([]);
      written.row.forget();
      written.read(commitLsn, progress);
      await written.write('b');
      expect(written.statements).toHaveLength(1);
    },
  );

  it('says that another process has written the row, without what was to be stored', async () => {
    const written = new Written().read(0x10n, 'a');
    written.accepts = false;
    const failure = await written.write('secret').catch((e: unknown) => e);
    expect(failure).toBeInstanceOf(CheckpointMovedError);
    expect(failure).toMatchObject({ slotName: 'orders' });
    expect(String(failure)).toContain(
      'Another process has written the checkpoint of slot orders',
    );
    expect(String(failure)).not.toContain('secret');
    expect(written.row.progress).toBe('a');
  });

  it('is not written before it was read', async () => {
    const written = new Written();
    expect(written.row.progress).toBeNull();
    written.row.advanced(0x10n);
    await expect(written.write('a')).rejects.toThrow(
      'The checkpoint must be read before it is written.',
    );
    written.read(0x10n, null);
    written.row.forget();
    await expect(written.write('a')).rejects.toThrow('must be read before');
  });
});
