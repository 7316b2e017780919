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

/** Mirrors the source by key, with a ledger of what was applied. */
@ReplicantSink()
export class LedgerSink {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.pool.query(sql, [...values]),
  );

  #hold = false;

  constructor(private readonly target: Target) {}

  /** Lets the next transaction rest before its COMMIT. */
  holdNext(): void {
    this.#hold = true;
  }

  @OnTransaction()
  async apply(transaction: Transaction): Promise<void> {
    await this.target.transaction(async (client) => {
      await mirror(client, this.checkpoints, transaction);
      if (!this.#hold) return;
      this.#hold = false;
      say('held');
      await sleep(HOLD_MS);
    });
  }
}
