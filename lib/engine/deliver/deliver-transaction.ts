import { isPromiseLike } from '../model/answer.js';
import { errorClass } from '../model/error-class.js';
import { HaltError } from '../model/halt.js';
import type { Transaction } from '../model/transaction.js';
import type { AroundDelivery } from '../options/pipeline-options.js';
import type { Sink } from './sink.js';

/** Tells what was found here from whatever a handler throws. */
class NoPromiseError extends Error {
  override readonly name = 'NoPromiseError';
}

/**
 * Hands one transaction to the sink and resolves when its work is durable.
 *
 * The outcome is the handler's own: whatever `around` does with the promise of `next` cannot turn a failed write into a
 * confirmed one, nor a durable one into a failure.
 *
 * @param onAroundFault - told the class of an error that `around` threw although the handler succeeded
 * @throws {@link HaltError} `sink_failed` and its kin
 */
export function deliverTransaction(
  sink: Sink,
  transaction: Transaction,
  around: AroundDelivery | null,
  onAroundFault: (errorClass: string) => void,
): Promise<void> {
  return around === null
    ? callHandler(sink, transaction)
    : deliverAround(sink, transaction, around, onAroundFault);
}

async function deliverAround(
  sink: Sink,
  transaction: Transaction,
  around: AroundDelivery,
  onAroundFault: (errorClass: string) => void,
): Promise<void> {
  const handler = new OnceCalled(() => callHandler(sink, transaction));
  const fault = await failureOf(async () =>
    around(transaction, () => handler.call()),
  );
  const outcome = handler.close();
  if (outcome === null) {
    throw new HaltError('sink_failed/around_skipped', {
      detail:
        fault === null
          ? 'around did not call next()'
          : `around failed with ${errorClass(fault.error)}`,
      lsn: transaction.commitLsn,
      sinkError: fault?.error,
    });
  }
  await outcome;
  if (fault !== null) onAroundFault(errorClass(fault.error));
}

/** A function that runs once, however often it is called, unless it was closed before. */
class OnceCalled {
  #outcome: Promise<void> | null = null;
  #closed = false;

  constructor(private readonly work: () => Promise<void>) {}

  /** After {@link close} nothing runs, and what is returned never settles: a rejection could end the process. */
  call(): Promise<void> {
    if (this.#closed && this.#outcome === null) return new Promise(() => {});
    this.#outcome ??= this.work();
    return this.#outcome;
  }

  /** The outcome of the work, `null` when it was not called; it never runs from now on. */
  close(): Promise<void> | null {
    this.#closed = true;
    return this.#outcome;
  }
}

async function failureOf(
  work: () => Promise<void>,
): Promise<{ readonly error: unknown } | null> {
  try {
    await work();
    return null;
  } catch (error) {
    return { error };
  }
}

async function callHandler(
  sink: Sink,
  transaction: Transaction,
): Promise<void> {
  const lsn = transaction.commitLsn;
  try {
    const result = sink.transaction(transaction);
    if (!isPromiseLike(result)) throw new NoPromiseError();
    await result;
  } catch (error) {
    if (error instanceof NoPromiseError) {
      throw new HaltError('sink_failed/no_promise', {
        detail: `a handler of ${sink.name} returned no promise`,
        lsn,
      });
    }
    throw new HaltError('sink_failed', {
      detail: `a handler of ${sink.name} failed with ${errorClass(error)}`,
      lsn,
      sinkError: error,
    });
  }
}
