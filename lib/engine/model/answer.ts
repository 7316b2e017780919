/** What a method of the user answered: only a promise that resolves says yes. */
export type Answer =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'no_promise' }
  | { readonly kind: 'rejected'; readonly error: unknown };

/** A handler returned nothing that can be awaited. Tells this from whatever a handler throws. */
export class NoPromiseError extends Error {
  override readonly name = 'NoPromiseError';

  constructor(handler: string) {
    super(`${handler} returned no promise`);
  }
}

/**
 * What a handler returned, to be awaited.
 *
 * @param handler how messages name it
 * @throws {NoPromiseError} when it is no promise
 */
export function promiseOf(
  handler: string,
  result: unknown,
): PromiseLike<unknown> {
  if (!isPromiseLike(result)) throw new NoPromiseError(handler);
  return result;
}

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

/** Whether a method written in JavaScript returned something that can be awaited. */
function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'then' in value &&
    typeof value.then === 'function'
  );
}
