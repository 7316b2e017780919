import { setTimeout as sleep } from 'node:timers/promises';
import { currentLsn, readSlot } from '../../test/support/logical-slot.js';
import { ApplicationProcess } from './application-process.js';
import { compare, countApplied } from './comparison.js';
import type { Pair } from './environment.js';
import { describe, Progress, type Reading } from './progress.js';
import { Writer } from './writer/writer.js';

const TRANSACTIONS = 20_000;
const KILLS = 5;
const SEED = 20_260_101;
/** So far the writer may be ahead: the kills shall fall while it writes. */
const MAX_AHEAD = 1_000;
const POLL_MS = 100;
const STATUS_INTERVAL_MS = 1_000;
/** Without any progress for this long there is nothing more to wait for. */
const STALL_MS = 90_000;

/** The result, as it is printed. */
export interface Verdict {
  readonly transactions: number;
  readonly kills: number;
  readonly missing: number;
  readonly extra: number;
  readonly different: number;
  readonly appliedTwice: number;
}

/** Kills the application five times while it copies 20,000 transactions, and looks whether the copy is exact. */
export class Proof {
  readonly #pair: Pair;
  readonly #progress: Progress;
  readonly #writer: Writer;
  #applied = 0;
  #kills = 0;
  #over = false;
  #changedAt = performance.now();
  #printedAt = 0;

  constructor(pair: Pair) {
    this.#pair = pair;
    this.#progress = new Progress(pair);
    this.#writer = new Writer({
      connection: pair.source.connection,
      seed: SEED,
      existing: 0,
      pace: () => this.#notTooFarAhead(),
    });
  }

  /** @returns the verdict, and whether all is as it must be */
  async run(stop: AbortSignal): Promise<{ verdict: Verdict; passed: boolean }> {
    const application = await ApplicationProcess.create(this.#pair);
    application.start();
    try {
      await application.ready();
      console.log(`Health   ${application.address}/health/ready`);
      const writing = this.#writer.write(TRANSACTIONS);
      const copying = this.#copyThroughKills(application, stop);
      await Promise.all([writing, copying]);
    } finally {
      this.#over = true;
      this.#writer.stop();
      await application.stop();
    }
    return this.#judge();
  }

  async #copyThroughKills(
    application: ApplicationProcess,
    stop: AbortSignal,
  ): Promise<void> {
    while (this.#kills < KILLS) {
      const due = ((this.#kills + 1) * TRANSACTIONS) / (KILLS + 1);
      await this.#until(() => this.#applied >= due, stop);
      await application.kill();
      this.#kills += 1;
      console.log(
        `SIGKILL ${this.#kills} of ${KILLS}: ${this.#applied} transactions applied, ${this.#writer.committed} written`,
      );
      application.start();
    }
    await this.#until(() => this.#writer.committed >= TRANSACTIONS, stop);
    await this.#caughtUp(stop);
  }

  /** The slot must be confirmed up to the end, which also shows that the last transactions are acknowledged. */
  async #caughtUp(stop: AbortSignal): Promise<void> {
    const { source, slotName } = this.#pair;
    const end = await currentLsn(source);
    await this.#until(async () => {
      const slot = await readSlot(source, slotName);
      return (slot?.confirmedFlushLsn ?? 0n) >= end;
    }, stop);
  }

  /** Polls, and shows the progress meanwhile. */
  async #until(
    condition: () => boolean | Promise<boolean>,
    stop: AbortSignal,
  ): Promise<void> {
    while (!(await condition())) {
      stop.throwIfAborted();
      this.#show(await this.#progress.read());
      if (performance.now() - this.#changedAt > STALL_MS) {
        throw new Error(`Nothing was applied for ${STALL_MS / 1000} s.`);
      }
      await sleep(POLL_MS);
    }
  }

  #show(reading: Reading): void {
    const now = performance.now();
    if (reading.transactions !== this.#applied) this.#changedAt = now;
    this.#applied = reading.transactions;
    if (now - this.#printedAt < STATUS_INTERVAL_MS) return;
    this.#printedAt = now;
    console.log(describe(reading));
  }

  async #notTooFarAhead(): Promise<void> {
    const ahead = () => this.#writer.committed - this.#applied;
    while (!this.#over && ahead() > MAX_AHEAD) await sleep(10);
  }

  async #judge(): Promise<{ verdict: Verdict; passed: boolean }> {
    const { source, target } = this.#pair;
    const { compared, missing, extra, different } = await compare(
      source,
      target,
    );
    const { applied, appliedTwice } = await countApplied(target);
    const transactions = this.#writer.committed;
    const kills = this.#kills;
    console.log(
      `${compared} rows compared; ${applied} of ${transactions} transactions applied, ${this.#writer.rolledBack} more were rolled back`,
    );
    const faults = missing + extra + different + appliedTwice;
    return {
      verdict: { transactions, kills, missing, extra, different, appliedTwice },
      passed:
        faults === 0 &&
        compared > 0 &&
        kills === KILLS &&
        transactions === TRANSACTIONS &&
        applied === transactions,
    };
  }
}
