/** What a step waits for that others do on the source, ready for JSON. */
export interface SourceWait {
  /** What waits: the creation of the slot, or the copy of the rows that exist already. */
  readonly what: 'slot' | 'copy';
  /**
   * - `transaction`: one that began earlier and has not ended
   * - `prepared_transaction`: one that was prepared earlier, and is neither committed nor rolled back
   * - `lock`: a lock on a table, which another session has or was the first to ask for
   * - `wal`: on a standby, a record that the primary writes from time to time, or on `pg_log_standby_snapshot()`
   */
  readonly for: 'transaction' | 'prepared_transaction' | 'lock' | 'wal';
  /** The process of the server that runs the transaction or has the lock; `null` where there is none. */
  readonly pid: number | null;
  /** How old the transaction is; `null` where the role may not know it (it needs `pg_read_all_stats` for that). */
  readonly ageSeconds: number | null;
  /** The `application_name` of the session, or the identifier of the prepared transaction; `null` where there is none. */
  readonly name: string | null;
  /** When the waiting began, ISO 8601. */
  readonly since: string;
}

/** Whoever is waited for. */
export type Blocker = Omit<SourceWait, 'what' | 'since'>;

/** Time after which a step is said to wait. */
export const WAIT_PATIENCE_MS = 10_000;

/** Says what is waited for. */
export function describeWait(wait: SourceWait): string {
  const what =
    wait.what === 'slot' ? 'the creation of the slot' : 'copying rows';
  return `${what} waits for ${describeBlocker(wait)}`;
}

/** Whether both wait for the same. */
export function isSameWait(
  a: SourceWait | null,
  b: SourceWait | null,
): boolean {
  return (
    a?.what === b?.what &&
    a?.for === b?.for &&
    a?.pid === b?.pid &&
    a?.name === b?.name
  );
}

function describeBlocker({
  for: kind,
  pid,
  name,
  ageSeconds,
}: Blocker): string {
  const age = ageSeconds === null ? '' : `, which is ${ageSeconds} s old`;
  const called = name === null ? '' : ` (application_name ${name})`;
  switch (kind) {
    case 'transaction':
      return pid === null
        ? 'a transaction of another server'
        : `the transaction of process ${pid} of the server${called}${age}`;
    case 'prepared_transaction':
      return `the prepared transaction ${name}${age}`;
    case 'lock':
      return `a lock on a table, and so for the transaction of process ${pid} of the server${called}${age}`;
    case 'wal':
      return 'a record of the primary: run pg_log_standby_snapshot() there';
  }
}
