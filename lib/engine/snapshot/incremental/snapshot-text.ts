import type { VisibleTransactions } from './visibility.js';

const SNAPSHOT = /^(\d+):(\d+):((?:\d+(?:,\d+)*)?)$/;

/**
 * Reads the text of a `pg_snapshot`, such as `10:20:10,14`; `null` when it is none.
 *
 * @param inRecovery - whether the server may have been in recovery when it was taken
 * @see {@link https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT | pg_snapshot}
 */
export function parseSnapshot(
  text: string,
  inRecovery: boolean,
): VisibleTransactions | null {
  const match = SNAPSHOT.exec(text);
  if (match === null) return null;
  const [, xmin = '', xmax = '', list = ''] = match;
  return {
    xmin: BigInt(xmin),
    xmax: BigInt(xmax),
    inProgress: new Set(list === '' ? [] : list.split(',').map(BigInt)),
    inRecovery,
  };
}
