import { ConnectionFault } from '../model/connection-fault.js';
import { errorClass } from '../model/error-class.js';
import { serverErrorPhrase } from './condition-names.js';
import { SlotHeldError } from './slot-holder.js';

/** What an error of a connection is. What follows from each class is decided in `retry-policy.ts`. */
export type ErrorClass =
  /** The server or the network is away: passes by itself, and is tried again for ever. */
  | 'transient'
  /** Wrong or rotated credentials: tried again slowly, so that nobody is locked out. */
  | 'authentication'
  /** Another session holds the slot: wait for it to leave. */
  | 'slot_active'
  /** What the chain has found out is not true any more: run it again. */
  | 'stale'
  /** A fault that the server reports before the stream: tried again as often as `maxCommandRetries` says. */
  | 'bounded'
  /** The server cannot decode its WAL: tried again as often, and only a transaction beyond it is progress. */
  | 'undecodable'
  /** The publication vanished while its changes were still in the WAL. */
  | 'publication_missing'
  /** Nothing but a person mends it: halt. */
  | 'permanent';

/** What the step that failed was doing: opening the session, the commands of the chain, or the stream. */
export type Phase = 'login' | 'connecting' | 'streaming';

/** An error of a connection, without its text: a server's message may quote a row. */
export interface JudgedError {
  readonly class: ErrorClass;
  /** A phrase for state, log and health. */
  readonly reason: string;
  /** `wal_sender_timeout` in milliseconds, where another session holds the slot and the server told it. */
  readonly walSenderTimeoutMs?: number | null;
  /** See {@link ConnectionFault.retryAfterMs}. */
  readonly retryAfterMs?: number | null;
}

const SQLSTATE = /^[0-9A-Z]{5}$/;
const SYSTEM_CODE = /^[A-Z][A-Z0-9_]{2,40}$/;

type ClassByPhase = Readonly<Record<Phase, ErrorClass>>;

function always(found: ErrorClass): ClassByPhase {
  return { login: found, connecting: found, streaming: found };
}

/** An error of the server that has no row below. */
const OTHERS: ClassByPhase = {
  login: 'bounded',
  connecting: 'bounded',
  streaming: 'transient',
};

/**
 * By SQLSTATE, longest match first: a whole code, then its class (two characters).
 *
 * @see {@link https://www.postgresql.org/docs/current/errcodes-appendix.html | PostgreSQL error codes}
 */
const CLASSES: Readonly<Record<string, ClassByPhase>> = {
  // The server is away, or full: it says so when it shuts down, starts up or cannot take another session.
  '08': always('transient'),
  '08P01': OTHERS, // protocol_violation: what a pooler answers
  '57P01': always('transient'), // admin_shutdown
  '57P02': always('transient'), // crash_shutdown
  '57P03': always('transient'), // cannot_connect_now
  '53300': always('transient'), // too_many_connections, and all of max_wal_senders
  // Who we are.
  '28': always('authentication'), // invalid_authorization_specification
  // The slot.
  '55006': always('slot_active'), // object_in_use
  '42710': { ...OTHERS, connecting: 'stale' }, // duplicate_object: somebody was quicker to create it
  '42704': {
    login: 'permanent',
    connecting: 'stale', // undefined_object: the slot vanished after the chain has seen it
    streaming: 'publication_missing',
  },
  '58P01': { ...OTHERS, streaming: 'undecodable' }, // undefined_file: its WAL is gone, the chain finds it lost
  '58030': { ...OTHERS, streaming: 'undecodable' }, // io_error: what it has written of a transaction cannot be read
  // Decoding.
  XX: { ...OTHERS, streaming: 'undecodable' }, // internal_error, data_corrupted
  // What only a person mends.
  '0A': always('permanent'), // feature_not_supported
  '22': always('permanent'), // data_exception: an option that the server refuses
  '3D': always('permanent'), // invalid_catalog_name: no such database
  '42': always('permanent'), // insufficient_privilege, syntax
  '54': always('permanent'), // program_limit_exceeded
  '55': always('permanent'), // object_not_in_prerequisite_state: wal_level, slot that lost its WAL
  '55P03': OTHERS, // lock_not_available
};

/** Classifies whatever a step of a connection threw. Pure. */
export function judgeError(error: unknown, phase: Phase): JudgedError {
  if (error instanceof SlotHeldError) {
    const { message, walSenderTimeoutMs } = error;
    return { class: 'slot_active', reason: message, walSenderTimeoutMs };
  }
  const sqlstate = sqlstateOf(error);
  if (sqlstate !== null) return judgeSqlstate(sqlstate, phase);
  if (error instanceof ConnectionFault) {
    const { message, retryAfterMs } = error;
    return { class: 'transient', reason: message, retryAfterMs };
  }
  return {
    class: 'transient',
    reason: `connection lost (${codeOf(error) ?? errorClass(error)})`,
  };
}

/** Whether this is an answer of the server with this SQLSTATE. */
export function hasSqlstate(error: unknown, sqlstate: string): boolean {
  return isServerError(error) && codeOf(error) === sqlstate;
}

/** The SQLSTATE of an answer of the server; `null` for any other error. */
export function sqlstateOf(error: unknown): string | null {
  const code = codeOf(error);
  return code !== null && isServerError(error) && SQLSTATE.test(code)
    ? code
    : null;
}

function judgeSqlstate(code: string, phase: Phase): JudgedError {
  const row = CLASSES[code] ?? CLASSES[code.slice(0, 2)] ?? OTHERS;
  const found = row[phase];
  return {
    class: found,
    reason:
      found === 'publication_missing'
        ? 'the publication does not exist at this point of the WAL'
        : serverErrorPhrase(code),
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
export function isServerError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'severity' in error;
}
