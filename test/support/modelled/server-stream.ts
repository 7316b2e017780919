import type { Lsn } from '../../../lib/engine/model/lsn.js';
import type { LoggedCommit, ModelChange, ModelSource } from './source.js';

/** What a server sends over a replication connection. */
export type Frame =
  | { readonly kind: 'begin'; readonly commit: LoggedCommit }
  | {
      readonly kind: 'change';
      readonly commit: LoggedCommit;
      readonly change: ModelChange;
    }
  | { readonly kind: 'commit'; readonly commit: LoggedCommit }
  | { readonly kind: 'keepalive'; readonly position: Lsn };

/** The frames of one connection, as they arrive one by one. */
export class ServerStream {
  readonly #frames: Frame[] = [];
  #next: number;
  #sentUpTo: Lsn;
  #asked = 0;

  constructor(
    private readonly source: ModelSource,
    first: number,
  ) {
    this.#next = first;
    this.#sentUpTo = source.log[first - 1]?.endLsn ?? 0n;
  }

  get isDrained(): boolean {
    return this.#frames.length === 0 && this.#isCaughtUp && this.#asked === 0;
  }

  get #isCaughtUp(): boolean {
    return this.#due === undefined;
  }

  /** The next commit that is flushed. */
  get #due(): LoggedCommit | undefined {
    const commit = this.source.log[this.#next];
    return commit !== undefined && commit.endLsn <= this.source.flushed
      ? commit
      : undefined;
  }

  /** The client asks for the position. */
  ask(): void {
    this.#asked += 1;
  }

  /** The server goes on: sends a transaction that was committed. */
  send(): void {
    const commit = this.#due;
    if (commit === undefined) return;
    this.#next += 1;
    this.#sentUpTo = commit.endLsn;
    this.#frames.push({ kind: 'begin', commit });
    for (const change of commit.changes)
      this.#frames.push({ kind: 'change', commit, change });
    this.#frames.push({ kind: 'commit', commit });
  }

  /** The server answers, and gets further before it does when there is anything to send. */
  answer(): void {
    if (this.#asked === 0) return;
    this.#asked -= 1;
    this.send();
    const position = this.#isCaughtUp ? this.source.flushed : this.#sentUpTo;
    this.#frames.push({ kind: 'keepalive', position });
  }

  arrive(): Frame | null {
    return this.#frames.shift() ?? null;
  }
}
