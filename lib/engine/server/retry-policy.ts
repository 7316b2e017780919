import type { Lsn } from '../model/lsn.js';
import type { HaltCode } from '../model/halts.js';
import type { ErrorClass, JudgedError, Phase } from './error-classes.js';
import { authenticationDelay, backoffDelay, pollDelay } from './retry-delay.js';

/** What is remembered of the faults of a pipeline. */
export interface RetryHistory {
  /** Failed attempts in a row. */
  readonly attempts: number;
  /** Those at the end of the row in which the server or the network was away. */
  readonly absences: number;
  /** Refused logins in a row. */
  readonly refusedLogins: number;
  /** Faults that the server reported before the stream, since frames flowed or the slot was found in use. */
  readonly commandFaults: number;
  /** Times that the findings of the chain were out of date, since frames flowed. */
  readonly staleFindings: number;
  /** Since when the slot is held by another session, and how often that was seen; `null` while it is not. */
  readonly slotHeld: { readonly since: number; readonly polls: number } | null;
  /** Faults of decoding at the same place: behind this transaction. */
  readonly undecodable: {
    readonly faults: number;
    readonly deliveredThrough: Lsn;
  };
}

/** The history of a pipeline that has just been started. */
export const NO_FAULTS: RetryHistory = {
  attempts: 0,
  absences: 0,
  refusedLogins: 0,
  commandFaults: 0,
  staleFindings: 0,
  slotHeld: null,
  undecodable: { faults: 0, deliveredThrough: 0n },
};

/** A connection that was refused or lost. */
export interface Fault extends JudgedError {
  readonly phase: Phase;
  /** Whether the server had sent anything of the stream. */
  readonly framesFlowed: boolean;
  /** The last transaction that the sink was given with success. */
  readonly deliveredThrough: Lsn;
  /** Milliseconds of a clock that never goes back. */
  readonly at: number;
}

/** What the options say of retries. */
export interface RetryLimits {
  readonly maxCommandRetries: number;
  readonly leaderElection: boolean;
}

/** What follows from a fault. */
export type RetryDecision =
  | { readonly kind: 'retry'; readonly delayMs: number }
  /** Another process is at work: look again after the delay. */
  | { readonly kind: 'standby'; readonly delayMs: number }
  | {
      readonly kind: 'halt';
      readonly code: HaltCode;
      readonly detail: string;
    };

/** Waited for a slot whose server tells no time-out. */
const DEFAULT_WAL_SENDER_TIMEOUT_MS = 60_000;

/** Adds a fault to the history. Pure. */
export function remember(history: RetryHistory, fault: Fault): RetryHistory {
  const before = fault.framesFlowed ? afterFrames(history) : history;
  const decoding = before.undecodable;
  const { deliveredThrough } = fault;
  const faultsHere =
    deliveredThrough > decoding.deliveredThrough ? 0 : decoding.faults;
  return {
    attempts: before.attempts + 1,
    absences: fault.class === 'transient' ? before.absences + 1 : 0,
    refusedLogins: refusedLogins(before, fault),
    commandFaults: commandFaults(before, fault),
    staleFindings: before.staleFindings + (fault.class === 'stale' ? 1 : 0),
    slotHeld: slotHeld(before, fault),
    undecodable: {
      faults: faultsHere + (fault.class === 'undecodable' ? 1 : 0),
      deliveredThrough,
    },
  };
}

/** Whether nothing but a person mends it. */
export function isFinal(errorClass: ErrorClass): boolean {
  return errorClass === 'permanent' || errorClass === 'publication_missing';
}

/** What to do, by a history that has the fault already. Pure. */
export function decide(
  history: RetryHistory,
  fault: Fault,
  limits: RetryLimits,
  random: number,
): RetryDecision {
  switch (fault.class) {
    case 'transient':
      return retry(
        fault.retryAfterMs ?? backoffDelay(history.absences, random),
      );
    case 'authentication':
      return retry(authenticationDelay(history.refusedLogins, random));
    case 'slot_active':
      return awaitSlot(history, fault, limits, random);
    case 'stale':
      return history.staleFindings === 1
        ? retry(0)
        : retryCommands(history, fault, limits, random);
    case 'bounded':
      return retryCommands(history, fault, limits, random);
    case 'undecodable':
      return retryBounded(history.undecodable.faults, fault, limits, random);
    case 'publication_missing':
      return {
        kind: 'halt',
        code: 'publication/missing',
        detail: fault.reason,
      };
    case 'permanent':
      return {
        kind: 'halt',
        code: 'command_error/permanent',
        detail: whatFailed(fault),
      };
  }
}

function afterFrames(history: RetryHistory): RetryHistory {
  return { ...NO_FAULTS, undecodable: history.undecodable };
}

/** Only a login that was accepted ends the row, for a network that fails in between proves nothing. */
function refusedLogins({ refusedLogins: before }: RetryHistory, fault: Fault) {
  if (fault.class === 'authentication') return before + 1;
  return fault.phase === 'login' ? before : 0;
}

/** A standby never sees frames: that it got as far as the slot shows that the server does its work. */
function commandFaults(before: RetryHistory, fault: Fault): number {
  if (fault.class === 'slot_active') return 0;
  return before.commandFaults + (isCommandFault(before, fault) ? 1 : 0);
}

/** The first time that the chain is out of date is a race that somebody else has won, and no fault. */
function isCommandFault(before: RetryHistory, fault: Fault): boolean {
  return (
    fault.class === 'bounded' ||
    (fault.class === 'stale' && before.staleFindings > 0)
  );
}

function slotHeld(
  { slotHeld: before }: RetryHistory,
  fault: Fault,
): RetryHistory['slotHeld'] {
  switch (fault.class) {
    case 'slot_active':
      return before === null
        ? { since: fault.at, polls: 1 }
        : { ...before, polls: before.polls + 1 };
    case 'transient':
    case 'authentication':
      // Says nothing of the slot.
      return before;
    default:
      return null;
  }
}

function retryCommands(
  history: RetryHistory,
  fault: Fault,
  limits: RetryLimits,
  random: number,
): RetryDecision {
  return retryBounded(history.commandFaults, fault, limits, random);
}

function retryBounded(
  faults: number,
  fault: Fault,
  { maxCommandRetries }: RetryLimits,
  random: number,
): RetryDecision {
  return faults > maxCommandRetries
    ? exhausted(`${whatFailed(fault)}, at ${times(faults)}`)
    : retry(backoffDelay(faults, random));
}

function awaitSlot(
  { slotHeld: held }: RetryHistory,
  fault: Fault,
  { maxCommandRetries, leaderElection }: RetryLimits,
  random: number,
): RetryDecision {
  const delayMs = Math.round(pollDelay(random));
  if (leaderElection) return { kind: 'standby', delayMs };
  const polls = held?.polls ?? 1;
  const waited = fault.at - (held?.since ?? fault.at);
  const enough =
    maxCommandRetries === 0 ||
    (polls > maxCommandRetries && waited >= slotPatience(fault));
  return enough
    ? exhausted(
        `${fault.reason}, at ${times(polls)} within ${Math.round(waited / 1_000)} s`,
      )
    : { kind: 'retry', delayMs };
}

/** Twice the time in which the server notices that the holder is gone. */
function slotPatience({ walSenderTimeoutMs }: Fault): number {
  const known = walSenderTimeoutMs ?? 0;
  return 2 * (known > 0 ? known : DEFAULT_WAL_SENDER_TIMEOUT_MS);
}

function retry(delayMs: number): RetryDecision {
  return { kind: 'retry', delayMs: Math.round(delayMs) };
}

function exhausted(detail: string): RetryDecision {
  return { kind: 'halt', code: 'command_error/exhausted', detail };
}

function whatFailed({ reason, phase }: Fault): string {
  return `${reason} while ${WHILE[phase]}`;
}

const WHILE = {
  login: 'connecting',
  connecting: 'connecting',
  streaming: 'streaming',
} as const satisfies Record<Phase, string>;

function times(attempts: number): string {
  return attempts === 1 ? '1 attempt' : `${attempts} attempts`;
}
