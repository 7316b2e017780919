import { AsyncResource } from 'node:async_hooks';

/** Why reading is paused. */
export type HoldReason =
  | 'starting'
  | 'asking'
  | 'backpressure'
  | 'replaying'
  | 'spilling'
  | 'pacing'
  | 'ending';

/** The one owner of pause and resume: reading goes on when nobody holds it any more. */
export class ReadGate {
  readonly #holds = new Set<HoldReason>();
  /** Runs in the context of the connection: one that a handler released must not read on, and deliver, in its context. */
  readonly #resume: () => void;

  constructor(
    private readonly socket: { pause(): unknown; resume(): unknown },
  ) {
    this.#resume = AsyncResource.bind(() => void socket.resume());
  }

  /** Held for longer than the moment of a pace: silence then says nothing about the server. */
  get paused(): boolean {
    return this.#holds.size > (this.#holds.has('pacing') ? 1 : 0);
  }

  isHeldFor(reason: HoldReason): boolean {
    return this.#holds.has(reason);
  }

  hold(reason: HoldReason): void {
    if (this.#holds.size === 0) this.socket.pause();
    this.#holds.add(reason);
  }

  /** Holds it as long as the work takes. */
  async during<T>(reason: HoldReason, work: () => Promise<T>): Promise<T> {
    this.hold(reason);
    try {
      return await work();
    } finally {
      this.release(reason);
    }
  }

  release(reason: HoldReason): void {
    if (this.#holds.delete(reason) && this.#holds.size === 0) this.#resume();
  }
}
