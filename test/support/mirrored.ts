import {
  compareTables,
  countApplied,
  type Difference,
} from './compare-tables.js';
import { currentLsn, readSlot } from './logical-slot.js';
import { CREATE_LEDGER } from './mirror.js';
import type { SuiteServer } from './suite.js';
import { TestApplication } from './test-application.js';
import type { TestDatabase } from './test-database.js';
import { waitFor } from './wait-for.js';

/** A source, the database that mirrors it, and the application that does so. */
export class Mirrored {
  #application: TestApplication | null = null;

  private constructor(
    readonly source: TestDatabase,
    readonly target: TestDatabase,
  ) {}

  /**
   * Creates the tables on both sides, and the publication `p` of them all.
   *
   * @param home - the server of the target
   */
  static async create(
    suite: SuiteServer,
    tables: string,
    home = suite,
  ): Promise<Mirrored> {
    const source = await suite.database();
    const target = await home.database('target');
    await source.query(`${tables}; create publication p for all tables`);
    await target.query(`${tables}; ${CREATE_LEDGER}`);
    return new Mirrored(source, target);
  }

  get slotName(): string {
    return `slot_${this.source.name}`;
  }

  /** Starts the application; it does not wait for its pipeline. */
  start(env: Readonly<Record<string, string>> = {}): TestApplication {
    this.#application = TestApplication.start('mirror', {
      SOURCE_URL: this.source.url,
      TARGET_URL: this.target.url,
      SLOT: this.slotName,
      ...env,
    });
    return this.#application;
  }

  /** Starts the application and waits until it streams. */
  async started(
    env: Readonly<Record<string, string>> = {},
  ): Promise<TestApplication> {
    const application = this.start(env);
    await application.says('streaming');
    return application;
  }

  /** Waits until everything that the source has committed is confirmed. */
  async caughtUp(timeout = 20_000): Promise<void> {
    const end = await currentLsn(this.source);
    await waitFor(
      async () => {
        this.#application?.refuseEnd();
        const slot = await readSlot(this.source, this.slotName);
        return (slot?.confirmedFlushLsn ?? 0n) >= end;
      },
      { timeout, message: 'the mirror to catch up' },
    );
  }

  /** What is wrong with the mirror. */
  async faults(): Promise<Difference & { readonly appliedTwice: number }> {
    const { appliedTwice } = await countApplied(this.target);
    return { ...(await compareTables(this.source, this.target)), appliedTwice };
  }
}

export const NO_FAULTS = {
  missing: 0,
  extra: 0,
  different: 0,
  appliedTwice: 0,
};
