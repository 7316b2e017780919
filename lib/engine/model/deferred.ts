/** A promise and the functions that settle it. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/** A promise that is settled from outside. Rejecting it is no unhandled rejection when nobody waits for it. */
export function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = nothing;
  let reject: (reason: unknown) => void = nothing;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  promise.catch(nothing);
  return {
    promise,
    resolve: (value) => resolve(value),
    reject: (reason) => reject(reason),
  };
}

function nothing(): void {
  // Settles nothing, waits for nothing.
}
