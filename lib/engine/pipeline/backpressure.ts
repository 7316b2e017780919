import { type Deferred, deferred } from '../model/deferred.js';
import type { PipelineDelivery } from './delivery.js';
import type { PipelineIntake } from './intake.js';
import type { ReadGate } from '../source/read-gate.js';

/** Payload bytes at which a transaction is handed over while the rest arrives; as objects they take several times that. */
export const HAND_OVER_BYTES = 2 * 1024 * 1024;
/** Payload bytes that are held of a transaction which the sink reads while it arrives. */
const ARRIVING_BYTES = 1024 * 1024;

/** Holds reading while the sink has as much as may be held, and lets it go on when half of that is done. */
export class Backpressure {
  /** Resolves for who waits for room. */
  #room: Deferred<void> | null = null;

  constructor(
    private readonly gate: ReadGate,
    private readonly delivery: Pick<
      PipelineDelivery,
      'bytes' | 'arrivingBytes' | 'held'
    >,
    private readonly intake: Pick<PipelineIntake, 'openBytes'>,
    private readonly maxInflightBytes: number,
  ) {}

  /** Payload bytes received and not yet durable. */
  get inflightBytes(): number {
    return this.delivery.bytes + this.intake.openBytes;
  }

  /** Asked after every frame, since an open transaction counts too; what nothing but itself fills goes on. */
  holdWhenFull(): void {
    if (this.delivery.bytes === 0 || !this.#fullTo(1)) return;
    this.gate.hold('backpressure');
    this.delivery.held();
  }

  releaseWhenDrained(): void {
    if (this.delivery.bytes === 0 || !this.#fullTo(0.5)) this.#release();
  }

  /** Resolves when there is room for more; `null` when there is. */
  room(): Promise<void> | null {
    this.holdWhenFull();
    if (!this.gate.isHeldFor('backpressure')) return null;
    this.#room ??= deferred();
    return this.#room.promise;
  }

  #release(): void {
    this.gate.release('backpressure');
    this.#room?.resolve();
    this.#room = null;
  }

  /** Whether this part of what may be held is held. */
  #fullTo(part: number): boolean {
    return (
      this.inflightBytes >= this.maxInflightBytes * part ||
      this.delivery.arrivingBytes >= ARRIVING_BYTES * part
    );
  }
}
