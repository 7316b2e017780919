import { describe, expect, it } from 'vitest';
import { HaltError } from '../model/halt.js';
import { probeServer } from './server-probe.js';
import type { CommandSession, TextRow } from './session.js';

/** A session whose server answers everything with the same rows. */
function answering(rows: readonly TextRow[]): CommandSession {
  return { query: async () => rows, queryPatiently: async () => rows };
}

async function haltOf(rows: readonly TextRow[]): Promise<unknown> {
  try {
    await probeServer(answering(rows));
    return null;
  } catch (error) {
    return error instanceof HaltError ? error.halt : error;
  }
}

describe('the probe of the server', () => {
  it.each([
    [
      { version: '149999', wal_sender_timeout: '60000' },
      "the server's version is 149999",
    ],
    [
      { version: '140022', wal_sender_timeout: '60000' },
      "the server's version is 140022",
    ],
    [
      { version: '90624', wal_sender_timeout: '60000' },
      "the server's version is 90624",
    ],
    [
      { version: 'PostgreSQL 18', wal_sender_timeout: '0' },
      'the server does not tell its version',
    ],
    [
      { version: null, wal_sender_timeout: '0' },
      'the server does not tell its version',
    ],
  ])('refuses %o as too old', async (row, detail) => {
    expect(await haltOf([row])).toMatchObject({
      code: 'config/server_too_old',
      detail: detail,
    });
  });

  it('refuses a server without an answer', async () => {
    expect(await haltOf([])).toMatchObject({ code: 'config/server_too_old' });
  });

  it.each([
    ['150000', '60000', 'f', 150_000, 60_000, false],
    ['180004', '0', 't', 180_004, 0, true],
  ])(
    'takes version %s with a timeout of %s, in recovery %s',
    async (version, timeout, recovery, number, milliseconds, inRecovery) => {
      const session = answering([
        {
          version,
          wal_level: 'logical',
          wal_sender_timeout: timeout,
          in_recovery: recovery,
          database_oid: '4294967295',
        },
      ]);
      expect(await probeServer(session)).toEqual({
        version: number,
        walSenderTimeoutMs: milliseconds,
        inRecovery,
        databaseOid: 4_294_967_295,
      });
    },
  );

  it.each(['minimal', 'replica', null])(
    'refuses a server whose wal_level is %s',
    async (walLevel) => {
      const row = {
        version: '180004',
        wal_level: walLevel,
        wal_sender_timeout: '0',
      };
      expect(await haltOf([row])).toMatchObject({
        code: 'preflight/wal_level',
        detail: `wal_level is ${walLevel ?? 'not told'}`,
      });
    },
  );

  it('takes the default for a timeout that the server does not tell', async () => {
    const session = answering([
      { version: '180004', wal_level: 'logical', wal_sender_timeout: null },
    ]);
    expect(await probeServer(session)).toMatchObject({
      walSenderTimeoutMs: 60_000,
    });
  });
});
