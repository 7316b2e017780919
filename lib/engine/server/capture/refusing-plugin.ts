import { HaltError } from '../../model/halt.js';
import { sqlstateOf } from '../error-classes.js';
import type { CaptureSet } from './capture-set.js';

/**
 * Does what an output plugin may refuse: making a slot for it, and starting it.
 *
 * @throws {HaltError} what the refusal means
 */
export async function refusingPlugin<T>(
  capture: Pick<CaptureSet, 'plugin' | 'refusal'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const sqlstate = sqlstateOf(error);
    const code = sqlstate === null ? null : capture.refusal(sqlstate);
    if (code === null) throw error;
    throw new HaltError(code, {
      detail: `the server answered ${sqlstate} to what ${capture.plugin} was asked`,
    });
  }
}
