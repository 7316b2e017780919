import { describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../../../test/support/keeper.js';
import type { StoredCheckpoint } from '../model/checkpoint.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import {
  furthestOf,
  readCheckpoint,
  watermarkOf,
} from './checkpoint-reading.js';

const CONTEXT = {
  pipeline: 'orders',
  slotName: 'orders',
  systemIdentifier: '7',
  timeline: 1,
};

class Stored extends MemoryKeeper {
  constructor(private readonly row: StoredCheckpoint) {
    super();
  }

  override async load(): Promise<StoredCheckpoint> {
    return this.row;
  }
}

describe('the watermark', () => {
  it.each([
    [null, null, null],
    [10n, null, 10n],
    [null, 20n, 19n],
    [10n, 20n, 19n],
    // The end of a commit record is past its start: the transaction that starts at that end is still to come.
    [10n, 11n, 10n],
    [30n, 20n, 30n],
  ])(
    'of commit %s and boundary %s is %s',
    (commitLsn, confirmedLsn, expected) => {
      expect(watermarkOf({ commitLsn, confirmedLsn })).toBe(expected);
    },
  );
});

describe('the furthest position', () => {
  it.each([
    [null, null, null],
    [10n, null, 10n],
    [null, 20n, 20n],
    [10n, 20n, 20n],
    [30n, 20n, 30n],
  ])(
    'of commit %s and boundary %s is %s',
    (commitLsn, confirmedLsn, expected) => {
      expect(furthestOf({ commitLsn, confirmedLsn })).toBe(expected);
    },
  );
});

describe('readCheckpoint', () => {
  it('takes a keeper without a row for nothing applied', async () => {
    const origin = { kind: 'keeper', keeper: new MemoryKeeper() } as const;
    expect(await readCheckpoint(origin, CONTEXT)).toEqual({
      commitLsn: null,
      confirmedLsn: null,
    });
  });

  it('halts on the row of another server', async () => {
    const keeper = new Stored({
      commitLsn: 1n,
      confirmedLsn: 2n,
      systemIdentifier: '8',
      timeline: 1,
    });
    const reading = readCheckpoint({ kind: 'keeper', keeper }, CONTEXT);
    await expect(reading).rejects.toMatchObject({
      halt: { code: 'session_identity/other_server' },
    });
  });

  it.each(['undefined', '1', '"0/1"', '{}'])(
    'halts when a method answers %s, which is neither a position nor null',
    async (json) => {
      const answer: unknown =
        json === 'undefined' ? undefined : JSON.parse(json);
      const origin = { kind: 'reader', read: async () => answer };
      const reading: unknown = Reflect.apply(readCheckpoint, null, [
        origin,
        CONTEXT,
      ]);
      await expect(reading).rejects.toMatchObject({
        halt: { code: 'checkpoint/invalid' },
      });
    },
  );

  it('takes null and zero from a method for nothing applied', async () => {
    for (const answer of [null, 0n]) {
      const origin = { kind: 'reader', read: async () => answer } as const;
      expect(await readCheckpoint(origin, CONTEXT)).toEqual({
        commitLsn: null,
        confirmedLsn: null,
      });
    }
  });

  it('names a failure without its text', async () => {
    const read = async (): Promise<never> => {
      throw new TypeError('secret');
    };
    const error: unknown = await readCheckpoint(
      { kind: 'reader', read },
      CONTEXT,
    ).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ConnectionFault);
    expect(error).not.toBeInstanceOf(HaltError);
    expect(String(error)).toContain('TypeError');
    expect(String(error)).not.toContain('secret');
  });
});
