/** Why reading is paused. */
export type HoldReason = 'starting' | 'types' | 'backpressure' | 'pacing';

/** The one owner of pause and resume: reading goes on when nobody holds it any more. */
export class ReadGate {
  readonly #holds = new Set<HoldReason>();

  constructor(
    private readonly socket: { pause(): unknown; resume(): unknown },
  ) {}

  /** Held for longer than the moment of a pace: silence then says nothing about the server. */
  get paused(): boolean {
    return this.#holds.size > (this.#holds.has('pacing') ? 1 : 0);
  }

  hold(reason: HoldReason): void {
    if (this.#holds.size === 0) this.socket.pause();
    this.#holds.add(reason);
  }

  release(reason: HoldReason): void {
    if (this.#holds.delete(reason) && this.#holds.size === 0)
      this.socket.resume();
  }
}
