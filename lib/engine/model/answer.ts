/** What a method of the user answered: only a promise that resolves says yes. */
export type Answer =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'no_promise' }
  | { readonly kind: 'rejected'; readonly error: unknown };

/** Calls a method of the user and waits for its answer. Never rejects. */
export async function answerOf(ask: () => unknown): Promise<Answer> {
  try {
    const result = ask();
    if (!isPromiseLike(result)) return { kind: 'no_promise' };
    await result;
    return { kind: 'accepted' };
  } catch (error) {
    return { kind: 'rejected', error };
  }
}

/** A method of the user returned no promise, so nothing tells when its work is durable. */
export class NoPromiseError extends Error {
  override readonly name = 'NoPromiseError';
}

/**
 * Hands on what a method of the user returned.
 *
 * @throws {@link NoPromiseError} when it cannot be awaited
 */
export function promiseOf(result: unknown): PromiseLike<unknown> {
  if (!isPromiseLike(result)) throw new NoPromiseError();
  return result;
}

/** Whether a method written in JavaScript returned something that can be awaited. */
function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'then' in value &&
    typeof value.then === 'function'
  );
}
