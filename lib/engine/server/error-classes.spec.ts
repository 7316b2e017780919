import { describe, expect, it } from 'vitest';
import { ConnectionFault } from '../model/connection-fault.js';
import { judgeError, type ErrorClass } from './error-classes.js';

const SECRET = 'planted-secret';

/** An error as the server reports it. */
function serverError(code: string): Error {
  return Object.assign(new Error(SECRET), { code, severity: 'ERROR' });
}

/** An error of the operating system or of Node. */
function systemError(code: string): Error {
  return Object.assign(new Error(SECRET), { code });
}

describe('judgeError', () => {
  it.each<[string, ErrorClass, string]>([
    ['57P01', 'transient', 'the server shuts down'],
    ['57P03', 'transient', 'the server starts up (G09)'],
    ['53300', 'transient', 'too many connections'],
    ['08006', 'transient', 'a connection failure'],
    ['XX000', 'transient', 'an internal error'],
    ['42710', 'transient', 'somebody created the slot first'],
    ['55P03', 'transient', 'a lock is held'],
    ['55006', 'slot_active', 'another session streams (G05)'],
    ['28P01', 'authentication', 'a wrong password (G08)'],
    ['28000', 'authentication', 'no entry in pg_hba.conf'],
    ['3D000', 'permanent', 'no such database'],
    ['42501', 'permanent', 'a missing privilege'],
    ['42704', 'permanent', 'no such slot'],
    ['22023', 'permanent', 'an option that the server refuses'],
    ['0A000', 'permanent', 'a feature that is missing'],
    ['55000', 'permanent', 'a slot that lost its WAL'],
    ['54000', 'permanent', 'a limit of the program'],
    ['58P01', 'permanent', 'a WAL file that is gone'],
  ])('takes %s for %s: %s', (code, errorClass) => {
    expect(judgeError(serverError(code), 'connecting')).toEqual({
      class: errorClass,
      reason: `server error ${code}`,
    });
  });

  it('knows a publication that vanished in mid-stream', () => {
    expect(judgeError(serverError('42704'), 'streaming').class).toBe(
      'publication_missing',
    );
  });

  it.each(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND'])(
    'reconnects after %s',
    (code) => {
      for (const phase of ['connecting', 'streaming'] as const) {
        expect(judgeError(systemError(code), phase)).toEqual({
          class: 'transient',
          reason: `connection lost (${code})`,
        });
      }
    },
  );

  it('takes no code of the operating system for a SQLSTATE', () => {
    // Five characters, as a SQLSTATE has.
    expect(judgeError(systemError('42501'), 'connecting').class).toBe(
      'transient',
    );
  });

  it('repeats its own messages, and of others only the name', () => {
    expect(judgeError(new ConnectionFault('no news'), 'streaming')).toEqual({
      class: 'transient',
      reason: 'no news',
    });
    expect(judgeError(new TypeError(SECRET), 'streaming').reason).toBe(
      'connection lost (TypeError)',
    );
    expect(judgeError(SECRET, 'streaming').reason).toBe(
      'connection lost (string)',
    );
    expect(judgeError(null, 'streaming').reason).toBe(
      'connection lost (object)',
    );
    expect(judgeError(systemError(SECRET), 'streaming').reason).toBe(
      'connection lost (Error)',
    );
  });
});
