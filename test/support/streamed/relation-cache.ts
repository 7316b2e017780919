interface Entry {
  version: number;
  /** `schema_sent`. */
  sent: boolean;
  /** Transactions in whose parts it was announced, by xid: `streamed_txns`. */
  readonly streamed: Set<number>;
}

/**
 * What pgoutput knows of the tables that it has announced on a connection: `RelationSyncCache`. Of plain transactions it keeps that it
 * has, of streamed ones in which; it forgets both when the table changes.
 */
export class RelationCache {
  readonly #entries = new Map<number, Entry>();

  /**
   * A row of the table is sent.
   *
   * @param xid - of the whole transaction, when this is a part of one that runs
   * @returns whether the table has to be announced before
   */
  announce(table: number, version: number, xid: number | null): boolean {
    let entry = this.#entries.get(table);
    if (entry?.version !== version) {
      entry = { version, sent: false, streamed: new Set() };
      this.#entries.set(table, entry);
    }
    const known = xid === null ? entry.sent : entry.streamed.has(xid);
    if (xid === null) entry.sent = true;
    else entry.streamed.add(xid);
    return !known;
  }

  /** Something about the table changed, or may have. */
  invalidate(table: number): void {
    this.#entries.delete(table);
  }

  /** What was announced in its parts counts for all. */
  commit(xid: number): void {
    for (const entry of this.#entries.values())
      if (entry.streamed.delete(xid)) entry.sent = true;
  }

  /** The transaction was rolled back, or a part of it. */
  abort(xid: number): void {
    for (const entry of this.#entries.values()) entry.streamed.delete(xid);
  }
}
