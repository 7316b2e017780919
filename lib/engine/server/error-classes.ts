import { ConnectionFault } from '../model/connection-fault.js';
import { errorClass } from '../model/error-class.js';

/** What to do about an error of a connection: each class has one answer. */
export type ErrorClass =
  /** Passes by itself: reconnect with growing delays. */
  | 'transient'
  /** Wrong or rotated credentials: reconnect slowly, so that nobody is locked out. */
  | 'authentication'
  /** Another session streams from the slot: wait for it to leave. */
  | 'slot_active'
  /** The publication vanished while its changes were still in the WAL. */
  | 'publication_missing'
  /** Nothing but a person mends it: halt. */
  | 'permanent';

/** What the step that failed was doing. */
export type Phase = 'connecting' | 'streaming';

/** An error of a connection, without its text: a server's message may quote a row. */
export interface JudgedError {
  readonly class: ErrorClass;
  /** A phrase for state, log and health. */
  readonly reason: string;
}

const SQLSTATE = /^[0-9A-Z]{5}$/;
const SYSTEM_CODE = /^[A-Z][A-Z0-9_]{2,40}$/;

/**
 * By SQLSTATE, longest match first: a whole code, then its class (two characters).
 *
 * @see {@link https://www.postgresql.org/docs/current/errcodes-appendix.html | PostgreSQL error codes}
 */
const CLASSES: Readonly<Record<string, ErrorClass>> = {
  '55006': 'slot_active', // object_in_use
  '42710': 'transient', // duplicate_object: somebody created the slot first, the chain finds it
  '55P03': 'transient', // lock_not_available
  '28': 'authentication', // invalid_authorization_specification
  '22': 'permanent', // data_exception: an option that the server refuses
  '3D': 'permanent', // invalid_catalog_name: no such database
  '42': 'permanent', // insufficient_privilege, undefined_object, syntax
  '0A': 'permanent', // feature_not_supported
  '54': 'permanent', // program_limit_exceeded
  '55': 'permanent', // object_not_in_prerequisite_state: wal_level, slot that lost its WAL
  '58P01': 'permanent', // undefined_file: WAL that the slot needs is gone
};

/** Classifies whatever a step of a connection threw. Pure. */
export function judgeError(error: unknown, phase: Phase): JudgedError {
  const code = codeOf(error);
  if (code !== null && isServerError(error) && SQLSTATE.test(code)) {
    if (phase === 'streaming' && code === '42704') {
      return {
        class: 'publication_missing',
        reason: 'the publication does not exist at this point of the WAL',
      };
    }
    return {
      class: CLASSES[code] ?? CLASSES[code.slice(0, 2)] ?? 'transient',
      reason: `server error ${code}`,
    };
  }
  if (error instanceof ConnectionFault)
    return { class: 'transient', reason: error.message };
  return {
    class: 'transient',
    reason: `connection lost (${code ?? errorClass(error)})`,
  };
}

function codeOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error))
    return null;
  const { code } = error;
  return typeof code === 'string' &&
    (SQLSTATE.test(code) || SYSTEM_CODE.test(code))
    ? code
    : null;
}

/** Tells an answer of the server from a code of the operating system, such as EPIPE, that looks like a SQLSTATE. */
function isServerError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'severity' in error;
}
