/** What the creation of the slot waits for, ready for JSON. */
export interface SlotWait {
  /**
   * - `transaction`: one that began earlier and has not ended
   * - `prepared_transaction`: one that was prepared earlier, and is neither committed nor rolled back
   * - `wal`: on a standby, a record that the primary writes from time to time, or on `pg_log_standby_snapshot()`
   */
  readonly for: 'transaction' | 'prepared_transaction' | 'wal';
  /** The process of the server that runs the transaction; `null` where there is none. */
  readonly pid: number | null;
  /** How old the transaction is; `null` where the role may not know it (it needs `pg_read_all_stats` for that). */
  readonly ageSeconds: number | null;
  /** The `application_name` of the session, or the identifier of the prepared transaction; `null` where there is none. */
  readonly name: string | null;
  /** When the creation of the slot began, ISO 8601. */
  readonly since: string;
}

/** Says what the creation of the slot waits for. */
export function describeWait(wait: SlotWait): string {
  return `the creation of the slot waits for ${blocker(wait)}`;
}

/** Whether both wait for the same. */
export function isSameWait(a: SlotWait | null, b: SlotWait | null): boolean {
  return a?.for === b?.for && a?.pid === b?.pid && a?.name === b?.name;
}

function blocker({ for: kind, pid, name, ageSeconds }: SlotWait): string {
  const age = ageSeconds === null ? '' : `, which is ${ageSeconds} s old`;
  switch (kind) {
    case 'transaction': {
      const called = name === null ? '' : ` (application_name ${name})`;
      return `the transaction of process ${pid} of the server${called}${age}`;
    }
    case 'prepared_transaction':
      return `the prepared transaction ${name}${age}`;
    case 'wal':
      return 'a record of the primary: run pg_log_standby_snapshot() there';
  }
}
