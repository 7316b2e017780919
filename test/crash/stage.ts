import path from 'node:path';
import { ApplicationProcess } from '../support/application-process.js';
import { replicateAllTables } from '../support/captured.js';
import { currentLsn, readSlot } from '../support/logical-slot.js';
import type { PostgresServer } from '../support/postgres-server.js';
import type { TestDatabase } from '../support/test-database.js';
import { waitFor } from '../support/wait-for.js';
import { CREATE_LEDGER, lastApplied } from './examine.js';
import { Load, LOAD_TABLES } from './load.js';
import { type Mode, type ModeName, MODES, type Plant } from './modes.js';
import { OPEN_TABLES, WORK_MEM } from './open-transactions.js';
import { SpillFiles } from './spill-files.js';

const PROGRAM = path.join(import.meta.dirname, 'programs', 'application.js');
const CATCH_UP_MS = 60_000;
const BOOT_MS = 30_000;
/** Until a point is reached, or an application that was asked to end has done so; draining may take 10 s. */
const REACH_MS = 90_000;

/** What a mode is played on: a source under load, a target, and the application in between. */
export class Stage {
  readonly slot: string;
  readonly #applications: ApplicationProcess[] = [];
  /** Before the application was started, in milliseconds since 1970-01-01 UTC. */
  #began = 0;

  private constructor(
    readonly source: TestDatabase,
    readonly target: TestDatabase,
    readonly load: Load,
    readonly mode: ModeName,
    private readonly plant: Plant | null,
    readonly spillFiles: SpillFiles,
  ) {
    this.slot = `slot_${source.name}`;
  }

  static async create(
    server: PostgresServer,
    mode: ModeName,
    plant: Plant | null,
  ): Promise<Stage> {
    const source = await server.createDatabase('source');
    const target = await server.createDatabase('target');
    await source.query(
      `${LOAD_TABLES.source}; create publication p for tables in schema public`,
    );
    await target.query(`${LOAD_TABLES.target}; ${CREATE_LEDGER}`);
    const { snapshot, streaming, decoder } = MODES[mode];
    if (decoder === 'pglogical') await replicateAllTables(source);
    if (streaming !== null) {
      for (const database of [source, target])
        await database.query(OPEN_TABLES);
      await source.query(
        `alter database "${source.name}" set logical_decoding_work_mem = '${WORK_MEM}'`,
      );
    }
    const load = await Load.create(
      source,
      snapshot !== null,
      snapshot === null ? null : () => lastApplied(target),
      streaming !== null,
    );
    // It goes with the server's own files, whatever happens.
    const spillFiles = new SpillFiles(
      path.join(path.dirname(server.dataFolder), `spill_${source.name}`),
    );
    return new Stage(source, target, load, mode, plant, spillFiles);
  }

  get promise(): Mode {
    return MODES[this.mode];
  }

  /** Number of the running application, from 1. */
  get run(): number {
    return this.#applications.length;
  }

  /** Applications that outlive what was done to them. */
  get running(): number {
    return this.#applications.filter(({ running }) => running).length;
  }

  get application(): ApplicationProcess {
    const application = this.#applications.at(-1);
    if (application === undefined) throw new Error('Nothing was started.');
    return application;
  }

  /** Starts the application; it does not wait for it. */
  start(): void {
    this.#began = Date.now();
    this.#applications.push(
      new ApplicationProcess(PROGRAM, {
        MODE: this.mode,
        SOURCE_URL: this.source.url,
        TARGET_URL: this.target.url,
        SLOT: this.slot,
        RUN: String(this.run + 1),
        PLANT: this.plant ?? '',
        SPILL_DIR: this.spillFiles.folder,
      }),
    );
  }

  /** Lets the application stand at a point once it has passed it some times. */
  async stand(point: string, passes = 0): Promise<void> {
    await this.application.says('booted', { timeout: BOOT_MS });
    this.application.tell(`stand / ${point} / ${passes}`);
  }

  /** Waits until it does. */
  async stands(point: string): Promise<void> {
    await this.application.says(`stands ${point}`, { timeout: REACH_MS });
  }

  /** Writes some transactions and nothing else, and waits until a batch of them is open. */
  async opensBatch(point: string, transactions: number): Promise<void> {
    await this.idle();
    await this.stand(point);
    await this.load.writes(transactions);
    this.application.tell('wait');
    await this.application.says('waiting', { timeout: REACH_MS });
  }

  /** Asks it to end, and waits until it has begun to. */
  async drains(): Promise<void> {
    this.application.signal('SIGTERM');
    await this.application.says('draining', { timeout: REACH_MS });
  }

  /** Waits until nothing is to be done, and sees to it that the server sends transactions while they run. */
  async streams(): Promise<void> {
    await this.application.says('streaming', { timeout: BOOT_MS });
    await this.idle();
    if (!this.application.said.includes('plain')) return;
    await this.close();
    this.start();
    await this.application.says('streaming', { timeout: BOOT_MS });
  }

  /** SIGKILL, and the server has noticed. */
  async kill(): Promise<void> {
    await this.application.kill();
    await this.spillFiles.afterKill(
      this.#began,
      this.application.said.includes('streaming'),
    );
    await waitFor(
      async () => {
        const slot = await readSlot(this.source, this.slot);
        // Before an initial copy there may be none.
        return slot === null
          ? this.promise.snapshot === 'initial'
          : !slot.active;
      },
      { message: 'the slot to be free' },
    );
  }

  /** Lets it end by itself. */
  async close(): Promise<void> {
    this.application.close();
    const { code, signal } = await this.application.ended({
      timeout: REACH_MS,
    });
    if (code !== 0)
      throw new Error(
        `The application ended with ${code ?? signal}:\n${this.application.output}`,
      );
    await this.spillFiles.afterEnd();
  }

  /** Pauses the load, and waits until everything is confirmed. */
  async idle(): Promise<void> {
    await this.load.pause();
    const end = await currentLsn(this.source);
    await waitFor(
      async () => {
        this.application.refuseEnd();
        const slot = await readSlot(this.source, this.slot);
        return slot?.active === true && (slot.confirmedFlushLsn ?? 0n) >= end;
      },
      { timeout: CATCH_UP_MS, message: 'the mirror to catch up' },
    );
  }

  /** Removes everything. */
  async remove(): Promise<void> {
    for (const application of this.#applications)
      if (application.running) await application.kill();
    await this.load.stop();
    await Promise.all([this.source.close(), this.target.close()]);
  }
}
