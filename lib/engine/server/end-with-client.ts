import { isServerError } from './error-classes.js';
import type { CommandSession } from './session.js';

/**
 * Lets the server look now and then whether its client is still there, for a process that was killed cancels nothing. Not
 * every platform can; the server looks from the next statement on.
 *
 * @see {@link https://www.postgresql.org/docs/current/runtime-config-connection.html#GUC-CLIENT-CONNECTION-CHECK-INTERVAL | client_connection_check_interval}
 */
export async function endWithClient(session: CommandSession): Promise<void> {
  try {
    await session.query(
      "select pg_catalog.set_config('client_connection_check_interval', '10s', false)",
    );
  } catch (error) {
    if (!isServerError(error)) throw error;
  }
}
