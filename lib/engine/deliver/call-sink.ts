import { CheckpointMovedError } from '../checkpoint/checkpoint-moved-error.js';
import { NoPromiseError, promiseOf } from '../model/answer.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { errorClass } from '../model/error-class.js';
import type { Delivery } from '../model/delivery.js';
import { HaltError, type HaltFacts } from '../model/halt.js';
import type { HaltCode } from '../model/halts.js';
import type { Lsn } from '../model/lsn.js';
import type { AroundDelivery } from '../options/pipeline-options.js';

/** One call of a method of the sink. */
export interface SinkCall {
  readonly delivery: Delivery;
  /** How messages name the method. */
  readonly what: string;
  /** Position for a halt; absent where no single transaction or message is to blame. */
  readonly lsn?: Lsn;
  call(): unknown;
}

/**
 * Calls the sink and resolves when its work is durable.
 *
 * The outcome is the handler's own: whatever `around` does with the promise of `next` cannot turn a failed write into a
 * confirmed one, nor a durable one into a failure.
 *
 * @param onAroundFault - told the class of an error that `around` threw although the handler succeeded
 * @throws {@link HaltError} `snapshot_failed` for rows of a snapshot, `sink_failed` for others, and its kin
 * @throws {@link ConnectionFault} when the sink was told that another process has written its checkpoint
 */
export function callSink(
  call: SinkCall,
  around: AroundDelivery | null,
  onAroundFault: (errorClass: string) => void,
): Promise<void> {
  return around === null
    ? callHandler(call)
    : callAround(call, around, onAroundFault);
}

async function callAround(
  call: SinkCall,
  around: AroundDelivery,
  onAroundFault: (errorClass: string) => void,
): Promise<void> {
  const handler = new OnceCalled(() => callHandler(call));
  const fault = await failureOf(async () =>
    around(call.delivery, () => handler.call()),
  );
  const outcome = handler.close();
  if (outcome === null) {
    throw new HaltError('sink_failed/around_skipped', {
      detail:
        fault === null
          ? 'around did not call next()'
          : `around failed with ${errorClass(fault.error)}`,
      ...factsOf(call),
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

async function callHandler(call: SinkCall): Promise<void> {
  try {
    await promiseOf(call.what, call.call());
  } catch (error) {
    if (error instanceof NoPromiseError) {
      throw new HaltError('sink_failed/no_promise', {
        detail: error.message,
        ...factsOf(call),
      });
    }
    // Nothing is wrong with the sink: its rows are too old, and what is to be done now is read at the next connect.
    if (error instanceof CheckpointMovedError)
      throw new ConnectionFault(
        'another process has written the checkpoint of this slot',
      );
    throw new HaltError(failureCode(call.delivery), {
      detail: `${call.what} failed with ${errorClass(error)}`,
      ...factsOf(call),
      sinkError: error,
    });
  }
}

function failureCode({ kind }: Delivery): HaltCode {
  return kind === 'snapshot' ? 'snapshot_failed' : 'sink_failed';
}

function factsOf({
  delivery,
  lsn,
}: SinkCall): Pick<HaltFacts, 'delivery' | 'lsn'> {
  const { kind } = delivery;
  return lsn === undefined ? { delivery: kind } : { delivery: kind, lsn };
}
