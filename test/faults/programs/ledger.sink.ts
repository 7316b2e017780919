import { setTimeout as sleep } from 'node:timers/promises';
import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from '../../../lib/index.js';
import { say } from '../../apps/settings.js';
import { Target } from '../../apps/target.module.js';
import { mirror } from '../../support/mirror.js';

/** Longer than a fault takes that is to meet the sink at work. */
const HOLD_MS = 600;

/** Before the next COMMIT, or after that of a transaction which was read while it arrived. */
export type Place = 'work' | 'large';

/** Mirrors the source by key, with a ledger of what was applied. */
@ReplicantSink()
export class LedgerSink {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.pool.query(sql, [...values]),
  );

  #hold: Place | null = null;

  constructor(private readonly target: Target) {}

  /** Lets a transaction rest at a place, once. */
  holdAt(place: Place): void {
    this.#hold = place;
  }

  @OnTransaction()
  async apply(transaction: Transaction): Promise<void> {
    const large = Symbol.asyncIterator in transaction.changes;
    await this.target.transaction(async (client) => {
      await mirror(client, this.checkpoints, transaction);
      await this.#rest('work');
    });
    if (large) await this.#rest('large');
  }

  async #rest(place: Place): Promise<void> {
    if (this.#hold !== place) return;
    this.#hold = null;
    say('held');
    await sleep(HOLD_MS);
  }
}
