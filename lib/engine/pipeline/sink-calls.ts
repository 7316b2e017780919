import { setTimeout as sleep } from 'node:timers/promises';
import { callSink, type SinkCall } from '../deliver/call-sink.js';
import type { Sink } from '../deliver/sink.js';
import type { SinkRetries } from '../deliver/sink-retries.js';
import type {
  Arrival,
  ArrivingWork,
  MessageWork,
  SnapshotCall,
  TransactionWork,
} from '../deliver/work.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import type { Transaction } from '../model/transaction.js';
import type { AroundDelivery } from '../options/pipeline-options.js';
import type { Tell } from '../telemetry/pipeline-events.js';
import type { SinkWork } from './work.js';

/** What calling the sink takes. */
export interface CallSubject {
  readonly sink: Sink;
  /** Transactions go to the sink's method for several. */
  readonly batches: boolean;
  readonly around: AroundDelivery | null;
  readonly retries: SinkRetries;
  /** Is told what the sink works on. */
  readonly work: Pick<SinkWork, 'begin' | 'end'>;
  /** Runs a handler so that what it calls can tell that it is inside one. */
  insideDelivery(work: () => Promise<void>): Promise<void>;
  tell: Tell;
  warning(message: string): void;
}

/** The commit position up to which the sink has everything, as its checkpoint says now; `null` for nothing. */
export type Applied = () => Promise<Lsn | null>;

/** Calls the handlers of the sink, again where the option `sinkRetry` allows it. */
export class SinkCalls {
  readonly #subject: CallSubject;
  readonly #ending = new AbortController();

  constructor(subject: CallSubject) {
    this.#subject = subject;
  }

  /** Nobody waits any more to call the sink again. */
  end(): void {
    this.#ending.abort();
  }

  /** Hands over a transaction that is held: it can be handed over again. */
  transaction(
    { transaction }: TransactionWork,
    applied: Applied,
  ): Promise<void> {
    const { commitLsn } = transaction;
    return this.#untilTaken(
      commitLsn,
      () => this.#hand([transaction]),
      async () => isWithin(commitLsn, await applied()),
    );
  }

  /** Hands over a transaction that arrives. It is gone when the handler has rejected, and comes again by a new connection only. */
  async arriving({ transaction, arrival }: ArrivingWork): Promise<void> {
    const { commitLsn } = transaction;
    const { retries } = this.#subject;
    try {
      await this.#hand([transaction], arrival);
      retries.succeeded(commitLsn);
    } catch (error) {
      if (arrival.broken !== null) throw error;
      const delayMs = this.#nextDelay(error, commitLsn);
      throw new ConnectionFault(
        `the sink is given the transaction at ${formatLsn(commitLsn)} again`,
        delayMs,
      );
    }
  }

  /**
   * Hands over several transactions at once.
   *
   * @returns whether the sink took them; if not, it is to be given them one by one
   */
  async batch(works: readonly TransactionWork[]): Promise<boolean> {
    try {
      await this.#hand(works.map(({ transaction }) => transaction));
      return true;
    } catch (error) {
      await this.#wait(this.#nextDelay(error, null));
      return false;
    }
  }

  /** Hands over a message outside any transaction. */
  async message({ message }: MessageWork): Promise<void> {
    const { sink } = this.#subject;
    const { lsn } = message;
    const call: SinkCall = {
      delivery: { kind: 'message', message },
      what: `an @OnMessage() method of ${sink.name}`,
      lsn,
      call: () => sink.message?.handle(message, { lsn }),
    };
    await this.#untilTaken(
      lsn,
      () => this.#call(call),
      async () => false,
    );
  }

  /** Hands over rows of a snapshot: they can be handed over again. */
  async snapshot(
    { rows, context }: SnapshotCall,
    taken: () => Promise<boolean>,
  ): Promise<void> {
    const { sink } = this.#subject;
    const call: SinkCall = {
      delivery: { kind: 'snapshot', rows, context },
      what: `@OnSnapshot() of ${sink.name}, given ${context.relation === '' ? 'progress alone' : `rows of ${context.relation}`},`,
      call: () => sink.snapshot?.(rows, context),
    };
    await this.#untilTaken(context.snapshotLsn, () => this.#call(call), taken);
  }

  #untilTaken(
    lsn: Lsn,
    call: () => Promise<void>,
    taken: () => Promise<boolean>,
  ): Promise<void> {
    // No promise for what is not asked for: each costs as much as a small row.
    return this.#subject.retries.limits.maxRetries === 0
      ? call()
      : this.#repeat(lsn, call, taken);
  }

  async #repeat(
    lsn: Lsn,
    call: () => Promise<void>,
    taken: () => Promise<boolean>,
  ): Promise<void> {
    const { retries } = this.#subject;
    for (;;) {
      try {
        await call();
        break;
      } catch (error) {
        await this.#wait(this.#nextDelay(error, lsn));
      }
      // Who was cut off and lives on may have applied it meanwhile; and so may this sink, if the answer of its commit was lost.
      if (await taken()) break;
    }
    retries.succeeded(lsn);
  }

  /**
   * How long to wait for the next attempt. Throws the error when there is none.
   *
   * @param lsn - `null` for a batch, which always has one: in parts
   */
  #nextDelay(error: unknown, lsn: Lsn | null): number {
    const { retries, tell } = this.#subject;
    if (!(error instanceof HaltError) || !retries.covers(error.halt.code))
      throw error;
    const next = lsn === null ? retries.inParts : retries.failed(lsn);
    if (next === null) throw error;
    const { maxRetries } = retries.limits;
    tell('retry', {
      of: 'sink',
      reason: error.halt.detail,
      attempt: next.attempt,
      maxRetries,
      delayMilliseconds: next.delayMs,
    });
    return next.delayMs;
  }

  async #wait(delayMs: number): Promise<void> {
    const { signal } = this.#ending;
    try {
      await sleep(delayMs, undefined, { signal });
    } catch {
      throw new ConnectionFault(
        'the connection ended before the sink was asked again',
      );
    }
  }

  #hand(
    transactions: readonly Transaction[],
    arrival: Arrival | null = null,
  ): Promise<void> {
    const { sink, batches } = this.#subject;
    const first = transactions[0];
    if (first === undefined) return Promise.resolve();
    const call: SinkCall = {
      delivery: batches
        ? { kind: 'batch', transactions }
        : { kind: 'transaction', transaction: first },
      call: () =>
        batches ? sink.batch?.(transactions) : sink.transaction?.(first),
      ...blamed(sink, first, transactions.at(-1)),
    };
    return this.#call(call, first, arrival);
  }

  async #call(
    call: SinkCall,
    transaction?: Transaction,
    arrival: Arrival | null = null,
  ): Promise<void> {
    const { around, work } = this.#subject;
    work.begin(performance.now(), transaction, arrival);
    try {
      await this.#subject.insideDelivery(() =>
        callSink(call, around, (name) =>
          this.#subject.warning(
            `the option around threw ${name} after the work was done`,
          ),
        ),
      );
    } finally {
      work.end();
    }
  }
}

/** A halt names the transaction; of several the bounds, since nobody knows at which of them the sink failed. */
function blamed(
  { name }: Sink,
  first: Transaction,
  last = first,
): Pick<SinkCall, 'what' | 'lsn'> {
  const what = `a handler of ${name}`;
  if (first === last) return { what, lsn: first.commitLsn };
  return {
    what: `${what}, given the transactions from ${formatLsn(first.commitLsn)} to ${formatLsn(last.commitLsn)},`,
  };
}

/** Whether this transaction is among what was applied. */
export function isWithin(commitLsn: Lsn, through: Lsn | null): boolean {
  return through !== null && commitLsn <= through;
}
