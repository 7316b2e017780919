import type { Delivery } from './delivery.js';
import { HALTS, type HaltCode } from './halts.js';
import { formatLsn, type Lsn } from './lsn.js';

/** Facts beside the code of a halt. */
export interface HaltFacts {
  /** What was found: names and positions, never a row value. */
  readonly detail: string;
  /** Commit position of the transaction, or position of the message, at which the pipeline halted. */
  readonly lsn?: Lsn;
  /** What the sink was handed when it failed. */
  readonly delivery?: Delivery['kind'];
  /** The error of the user's own sink. */
  readonly sinkError?: unknown;
}

/** Why a pipeline stands still until somebody acts. Slot and checkpoint are as they were. */
export class Halt {
  /** What to do, in one sentence. */
  readonly remedy: string;
  /** What was found: names and positions, never a row value. */
  readonly detail: string;
  /**
   * Commit position of the transaction, or position of the message, at which the pipeline halted; `null` where there is none, and for a
   * batch of several, of which nobody knows the one that failed.
   */
  readonly lsn: Lsn | null;
  /** What the sink was handed when it failed; `null` for other halts. */
  readonly delivery: Delivery['kind'] | null;
  readonly at: Date;
  readonly #sinkError: unknown;

  constructor(
    readonly code: HaltCode,
    facts: HaltFacts,
  ) {
    this.remedy = HALTS[code].remedy;
    this.detail = facts.detail;
    this.lsn = facts.lsn ?? null;
    this.delivery = facts.delivery ?? null;
    this.at = new Date();
    this.#sinkError = facts.sinkError;
  }

  /** Gives the position as text, because JSON has no bigint; and never the error of the sink. */
  toJSON() {
    const { code, remedy, detail, lsn, delivery, at } = this;
    return {
      code,
      remedy,
      detail,
      lsn: lsn === null ? null : formatLsn(lsn),
      delivery,
      at: at.toISOString(),
    };
  }

  /**
   * The error that the sink rejected with; `undefined` for every other halt. It is a method and not a property
   * because such errors carry row values, and printing a halt must never print them.
   */
  sinkError(): unknown {
    return this.#sinkError;
  }
}

/** Ends a connection and halts its pipeline; also what waiting for a halted pipeline rejects with. */
export class HaltError extends Error {
  override readonly name = 'HaltError';
  readonly #halt: Halt;

  constructor(code: HaltCode, facts: HaltFacts);
  constructor(halt: Halt);
  constructor(codeOrHalt: HaltCode | Halt, facts: HaltFacts = { detail: '' }) {
    const halt =
      codeOrHalt instanceof Halt ? codeOrHalt : new Halt(codeOrHalt, facts);
    super(`${halt.code}: ${halt.detail}. ${halt.remedy}`);
    this.#halt = halt;
  }

  /** Why the pipeline halted. */
  get halt(): Halt {
    return this.#halt;
  }
}
