import { deferred } from './deferred.js';

/** Whether the work resolves in time. It goes on when it does not. */
export async function within(
  work: Promise<unknown>,
  timeoutMs: number,
): Promise<boolean> {
  const late = deferred<boolean>();
  const timer = setTimeout(() => late.resolve(false), timeoutMs);
  try {
    return await Promise.race([work.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
