import { describe, expect, it } from 'vitest';
import { ConnectionFault } from '../model/connection-fault.js';
import { judgeError, type ErrorClass } from './error-classes.js';
import { SlotHeldError } from './slot-holder.js';

const SECRET = 'planted-secret';

/** An error as the server reports it. */
function serverError(code: string): Error {
  return Object.assign(new Error(SECRET), { code, severity: 'ERROR' });
}

/** An error of the operating system or of Node. */
function systemError(code: string): Error {
  return Object.assign(new Error(SECRET), { code });
}

/** The class of a SQLSTATE at login, in the chain and in the stream. */
type Row = [string, ErrorClass, ErrorClass, ErrorClass, string];

describe('judgeError', () => {
  it.each<Row>([
    ['57P01', 'transient', 'transient', 'transient', 'shut down'],
    ['57P02', 'transient', 'transient', 'transient', 'crashed'],
    ['57P03', 'transient', 'transient', 'transient', 'starting up (G09)'],
    ['53300', 'transient', 'transient', 'transient', 'full (I05)'],
    ['08006', 'transient', 'transient', 'transient', 'a lost connection'],
    ['08P01', 'bounded', 'bounded', 'transient', 'a pooler'],
    ['28P01', 'authentication', 'authentication', 'authentication', 'G08'],
    ['28000', 'authentication', 'authentication', 'authentication', 'pg_hba'],
    ['55006', 'slot_active', 'slot_active', 'slot_active', 'in use (G05)'],
    ['42710', 'bounded', 'stale', 'transient', 'somebody was quicker'],
    ['42704', 'permanent', 'stale', 'publication_missing', 'slot gone'],
    ['58P01', 'bounded', 'bounded', 'undecodable', 'WAL that is gone'],
    ['58030', 'bounded', 'bounded', 'undecodable', 'a file that is broken'],
    ['XX000', 'bounded', 'bounded', 'undecodable', 'a decoding error'],
    ['XX001', 'bounded', 'bounded', 'undecodable', 'broken data'],
    ['53400', 'bounded', 'bounded', 'transient', 'no slot left (I05)'],
    ['55P03', 'bounded', 'bounded', 'transient', 'a lock that is held'],
    ['57014', 'bounded', 'bounded', 'transient', 'a cancelled command'],
    ['99999', 'bounded', 'bounded', 'transient', 'what nobody knows'],
    ['3D000', 'permanent', 'permanent', 'permanent', 'no such database'],
    ['42501', 'permanent', 'permanent', 'permanent', 'a missing privilege'],
    ['22023', 'permanent', 'permanent', 'permanent', 'a refused option'],
    ['0A000', 'permanent', 'permanent', 'permanent', 'a missing feature'],
    ['55000', 'permanent', 'permanent', 'permanent', 'wal_level'],
    ['54000', 'permanent', 'permanent', 'permanent', 'a program limit'],
  ])('takes %s for %s, %s and %s: %s', (code, ...classes) => {
    const found = (['login', 'connecting', 'streaming'] as const).map(
      (phase) => judgeError(serverError(code), phase).class,
    );
    expect(found).toEqual(classes.slice(0, 3));
  });

  it('gives the name of a condition, and never the text of the server', () => {
    expect(judgeError(serverError('55006'), 'connecting').reason).toBe(
      'server error 55006 (object_in_use)',
    );
    expect(judgeError(serverError('99999'), 'connecting').reason).toBe(
      'server error 99999',
    );
  });

  it('says who holds the slot', () => {
    const error = new SlotHeldError(
      { pid: 7, applicationName: 'nestjs-replicant orders' },
      2_000,
    );
    expect(judgeError(error, 'connecting')).toEqual({
      class: 'slot_active',
      reason:
        'the slot is held by process 7 of the server, application_name nestjs-replicant orders',
      walSenderTimeoutMs: 2_000,
    });
    expect(
      new SlotHeldError({ pid: 7, applicationName: '' }, null).message,
    ).toBe('the slot is held by process 7 of the server');
    expect(new SlotHeldError(null, null).message).toBe(
      'the slot is held by another session',
    );
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
      retryAfterMs: null,
    });
    expect(judgeError(new ConnectionFault('later', 50), 'login')).toMatchObject(
      { class: 'transient', retryAfterMs: 50 },
    );
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
