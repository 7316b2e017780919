/** Who holds which table, so that no session of a schedule ever waits for another one. Held to the end of the transaction. */
export class TableLocks {
  readonly #writers = new Map<string, Set<number>>();
  readonly #owners = new Map<string, number>();

  /** For changes of rows. `false` when it would wait. */
  share(session: number, table: string): boolean {
    if (!this.#isFree(session, this.#owners.get(table))) return false;
    const writers = this.#writers.get(table) ?? new Set();
    this.#writers.set(table, writers.add(session));
    return true;
  }

  /** For a change of the table itself. */
  own(session: number, table: string): boolean {
    if (!this.share(session, table)) return false;
    if ((this.#writers.get(table)?.size ?? 0) > 1) return false;
    this.#owners.set(table, session);
    return true;
  }

  release(session: number): void {
    for (const writers of this.#writers.values()) writers.delete(session);
    for (const [table, owner] of this.#owners)
      if (owner === session) this.#owners.delete(table);
  }

  #isFree(session: number, owner: number | undefined): boolean {
    return owner === undefined || owner === session;
  }
}
