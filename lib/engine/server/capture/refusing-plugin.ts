import { HaltError } from '../../model/halt.js';
import { hasSqlstate, sqlstateOf } from '../error-classes.js';
import type { CaptureSet } from './capture-set.js';
import { ALLOWED_PLUGINS } from './plugin-checks.js';

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
    if (isNotAllowed(error))
      throw new HaltError('decoder/plugin_not_allowed', {
        detail: `run, with what is listed already for the dots: ALTER SYSTEM SET ${ALLOWED_PLUGINS} = …, '${capture.plugin}'`,
      });
    const sqlstate = sqlstateOf(error);
    const code = sqlstate === null ? null : capture.refusal(sqlstate);
    if (code === null) throw error;
    throw new HaltError(code, {
      detail: `the server answered ${sqlstate} to what ${capture.plugin} was asked`,
    });
  }
}

/** Other privileges are missing by the same SQLSTATE. The name of a setting is the same in all languages. */
function isNotAllowed(error: unknown): boolean {
  return (
    hasSqlstate(error, '42501') && // insufficient_privilege
    typeof error === 'object' &&
    error !== null &&
    'hint' in error &&
    typeof error.hint === 'string' &&
    error.hint.includes(ALLOWED_PLUGINS)
  );
}
