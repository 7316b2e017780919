import { setTimeout as sleep } from 'node:timers/promises';
import { currentLsn, readSlot } from '../../test/support/logical-slot.js';
import { ApplicationProcess, type Mode } from './application-process.js';
import { compare, countCopied } from './comparison.js';
import type { Environment, Pair } from './environment.js';
import { describeSnapshot } from './snapshot-bar.js';
import { Writer } from './writer/writer.js';

const ROWS = 200_000;
const SEED = 20_260_102;
/** Each of the writer's connections waits this long before a transaction. */
const PAUSE_MS = 20;
/** So far the writer may be ahead of the copy: a page waits for the transactions before it. */
const MAX_AHEAD = 200;
const POLL_MS = 25;
const TIMEOUT_MS = 120_000;

/** How a bootstrap of a populated shop went, as it is printed. */
export interface BootstrapVerdict {
  /** In the shop before. */
  readonly rows: number;
  /** From the start of the application until all was copied, kills included. */
  readonly seconds: number;
  readonly kills: number;
  /** Rows that are missing, extra or different in the end. */
  readonly differences: number;
  /** Rows of the snapshot that were applied more than once. */
  readonly repeated: number;
}

/** Copies a shop of 200,000 rows while it is written to, and looks whether the copy is exact. */
export class Bootstrap {
  readonly #application: ApplicationProcess;
  readonly #writer: Writer;
  #kills = 0;
  /** Transactions in the copy. */
  #applied = 0;
  #over = false;

  private constructor(
    private readonly pair: Pair,
    private readonly mode: Mode,
    /** So often it is killed on the way. */
    private readonly killsDue: number,
    application: ApplicationProcess,
  ) {
    this.#application = application;
    this.#writer = new Writer({
      connection: pair.source.connection,
      seed: SEED,
      existing: ROWS,
      pace: () => this.#notTooFarAhead(),
    });
  }

  static async create(
    environment: Environment,
    mode: Mode,
    kills: number,
  ): Promise<Bootstrap> {
    const pair = await environment.createPair(ROWS);
    const application = await ApplicationProcess.create(pair, mode);
    return new Bootstrap(pair, mode, kills, application);
  }

  /** @returns the verdict, and whether all is as it must be */
  async run(
    stop: AbortSignal,
  ): Promise<{ verdict: BootstrapVerdict; passed: boolean }> {
    console.log(`Copying ${ROWS} rows that exist already, mode ${this.mode}`);
    const began = performance.now();
    const writing = this.#writer.write(Number.MAX_SAFE_INTEGER);
    this.#application.start();
    let seconds: number;
    try {
      await Promise.race([writing, this.#copyThroughKills(stop)]);
      seconds = (performance.now() - began) / 1_000;
      this.#stopWriting();
      await writing;
      await this.#caughtUp(stop);
    } finally {
      this.#stopWriting();
      await Promise.allSettled([writing]);
      await this.#application.stop();
    }
    return this.#judge(seconds);
  }

  async #copyThroughKills(stop: AbortSignal): Promise<void> {
    while (this.#kills < this.killsDue) {
      const due = ((this.#kills + 1) * ROWS) / (this.killsDue + 1);
      await until(async () => (await this.#copied()) >= due, stop);
      await this.#application.kill();
      this.#kills += 1;
      const copied = await this.#copied();
      console.log(
        `SIGKILL ${this.#kills} of ${this.killsDue}: ${copied} rows copied`,
      );
      this.#application.start();
    }
    await until(async () => {
      await this.#copied();
      const status = await this.#application.status();
      if (status?.halt) throw new Error(`It halted: ${status.halt.code}`);
      const snapshot = status?.snapshot;
      if (snapshot?.state !== 'complete') return false;
      console.log(describeSnapshot(snapshot));
      return true;
    }, stop);
  }

  /** Rows that a snapshot has brought so far. Notes what the stream has brought. */
  async #copied(): Promise<number> {
    const [row] = await this.pair.target.query<{
      rows: number;
      applied: number;
    }>(
      `SELECT coalesce(sum(cardinality(keys)), 0)::int AS rows,
          (SELECT count(*)::int FROM ledger) AS applied FROM copied`,
    );
    this.#applied = row?.applied ?? 0;
    return row?.rows ?? 0;
  }

  async #notTooFarAhead(): Promise<void> {
    await sleep(PAUSE_MS);
    while (!this.#over && this.#writer.committed - this.#applied > MAX_AHEAD)
      await sleep(POLL_MS);
  }

  #stopWriting(): void {
    this.#over = true;
    this.#writer.stop();
  }

  async #caughtUp(stop: AbortSignal): Promise<void> {
    const { source, slotName } = this.pair;
    const end = await currentLsn(source);
    await until(async () => {
      const slot = await readSlot(source, slotName);
      return (slot?.confirmedFlushLsn ?? 0n) >= end;
    }, stop);
  }

  async #judge(
    seconds: number,
  ): Promise<{ verdict: BootstrapVerdict; passed: boolean }> {
    const { source, target } = this.pair;
    const { compared, missing, extra, different } = await compare(
      source,
      target,
    );
    const { copied, repeated } = await countCopied(target);
    console.log(
      `${compared} rows compared; ${copied} copied, beside ${this.#writer.committed} transactions`,
    );
    const differences = missing + extra + different;
    return {
      verdict: {
        rows: ROWS,
        seconds: Math.round(seconds * 10) / 10,
        kills: this.#kills,
        differences,
        repeated,
      },
      passed:
        differences === 0 &&
        repeated === 0 &&
        this.#kills === this.killsDue &&
        copied > ROWS * 0.9 &&
        this.#writer.committed > 0,
    };
  }
}

async function until(
  condition: () => Promise<boolean>,
  stop: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  while (!(await condition())) {
    stop.throwIfAborted();
    if (performance.now() > deadline)
      throw new Error(`The copy did not come on for ${TIMEOUT_MS / 1_000} s.`);
    await sleep(POLL_MS);
  }
}
