import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { ApplicationProcess } from '../support/application-process.js';
import {
  compareTables,
  countApplied,
  type Difference,
} from '../support/compare-tables.js';
import { currentLsn, readSlot } from '../support/logical-slot.js';
import { CREATE_LEDGER } from '../support/mirror.js';
import { PostgresServer } from '../support/postgres-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import type { TestDatabase } from '../support/test-database.js';
import { waitFor } from '../support/wait-for.js';
import { Load, LOAD_TABLES } from './load.js';
import type { Place } from './programs/ledger.sink.js';

const PROGRAM = path.join(import.meta.dirname, 'programs', 'mirror.js');
const SLOT = 'faults';
/** By its name the sessions of the application are told from ours. */
const ROLE = 'application';
const CATCH_UP_MS = 60_000;
const BOOT_MS = 30_000;
/** How long a process that was asked to end may take; as much as draining takes, and some time for a busy machine. */
const END_MS = 20_000;
/** The source has no patience, so that silence is noticed soon. */
const SETTINGS = { wal_sender_timeout: '2s' };

/** How far the target is from the source. */
export interface Comparison extends Difference {
  readonly appliedTwice: number;
  /** Transactions that the source has committed. */
  readonly transactions: number;
}

/** Everything that a fault may hit: two servers, the network to the first, and the application in between. */
export class Stage {
  #application: ApplicationProcess | null = null;
  #started = 0;
  #reconnects = 0;

  private constructor(
    readonly sourceServer: PostgresServer,
    private readonly targetServer: PostgresServer,
    readonly source: TestDatabase,
    readonly target: TestDatabase,
    readonly proxy: TcpProxy,
    readonly load: Load,
    /** Where applications record what must not happen. */
    private readonly findingsFile: string,
  ) {}

  static async create(findingsFile: string): Promise<Stage> {
    const sourceServer = await PostgresServer.start({ settings: SETTINGS });
    const targetServer = await PostgresServer.start();
    const source = await sourceServer.createDatabase('source');
    const target = await targetServer.createDatabase('target');
    await source.query(
      `create role ${ROLE} login replication password '${ROLE}';
       ${LOAD_TABLES.source}; create publication p for all tables`,
    );
    await target.query(`${LOAD_TABLES.target}; ${CREATE_LEDGER}`);
    return new Stage(
      sourceServer,
      targetServer,
      source,
      target,
      await TcpProxy.start(sourceServer.connection),
      new Load(source, target),
      findingsFile,
    );
  }

  /** Processes of the application so far. */
  get started(): number {
    return this.#started;
  }

  /** Connections that the applications have lost, or tried in vain. */
  get reconnects(): number {
    return this.#reconnects + this.#reconnectsOf(this.#application);
  }

  get application(): ApplicationProcess {
    if (this.#application === null) throw new Error('Nothing was started.');
    return this.#application;
  }

  /** Starts the application; it does not wait for its pipeline. */
  start(): ApplicationProcess {
    this.#reconnects += this.#reconnectsOf(this.#application);
    const { host, port } = this.proxy;
    this.#started += 1;
    this.#application = new ApplicationProcess(PROGRAM, {
      SOURCE_URL: `postgresql://${ROLE}:${ROLE}@${host}:${port}/${this.source.name}`,
      TARGET_URL: this.target.url,
      SLOT,
      FINDINGS: this.findingsFile,
    });
    return this.#application;
  }

  /** Waits until the application has booted, and hears what it is told. */
  async booted(): Promise<void> {
    await this.application.says('booted', { timeout: BOOT_MS });
  }

  /** Waits for the end that the application was asked for. One that stays alive is killed, and recorded. */
  async ended(): Promise<void> {
    try {
      await this.application.ended({ timeout: END_MS });
    } catch {
      appendFileSync(this.findingsFile, 'open process\n');
      await this.application.kill();
    }
  }

  /** Lets the sink rest, and waits until it does. */
  async holdSink(place: Place): Promise<void> {
    await this.booted();
    const { application } = this;
    const held = (): number =>
      application.said.filter((word) => word === 'held').length;
    const before = held();
    application.tell(`hold ${place}`);
    await waitFor(
      () => {
        application.refuseEnd();
        return held() > before;
      },
      { message: 'the sink to be at work', timeout: CATCH_UP_MS },
    );
  }

  /** Ends every session that the application has at the source. */
  async terminateSessions(): Promise<void> {
    await this.source.query(
      'select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = $1',
      [ROLE],
    );
  }

  /** Waits until everything that the source has committed is confirmed. */
  async caughtUp(): Promise<void> {
    const end = await currentLsn(this.source);
    await waitFor(
      async () => {
        this.application.refuseEnd();
        const slot = await readSlot(this.source, SLOT);
        return slot?.active === true && (slot.confirmedFlushLsn ?? 0n) >= end;
      },
      { timeout: CATCH_UP_MS, message: 'the mirror to catch up' },
    );
  }

  async compare(): Promise<Comparison> {
    const difference = await compareTables(this.source, this.target);
    const { applied, appliedTwice } = await countApplied(this.target);
    const [journal] = await this.source.query<{ transactions: number }>(
      'select count(*)::int as transactions from journal',
    );
    const transactions = journal?.transactions ?? 0;
    return {
      missing: difference.missing + Math.max(0, transactions - applied),
      extra: difference.extra + Math.max(0, applied - transactions),
      different: difference.different,
      appliedTwice,
      transactions,
    };
  }

  /** What the pipeline says of itself, for the report of a round that failed. */
  async describe(): Promise<string> {
    const { application } = this;
    const said = application.said.length;
    application.tell('status');
    const status = await waitFor(
      () =>
        application.said
          .slice(said)
          .find((word) => word.startsWith('status ')) ??
        (application.running ? null : 'the application has ended'),
      { timeout: 5_000 },
    ).catch(() => 'the application does not answer');
    return `${status}\n${application.output}`;
  }

  /** Removes everything. */
  async remove(): Promise<void> {
    await this.#application?.kill();
    await this.proxy.close();
    if (!this.sourceServer.running) await this.sourceServer.startAgain();
    await this.load.stop();
    await Promise.all([this.source.close(), this.target.close()]);
    await Promise.all([this.sourceServer.remove(), this.targetServer.remove()]);
  }

  #reconnectsOf(application: ApplicationProcess | null): number {
    const said = application?.said ?? [];
    return said.filter((word) => word === 'reconnects').length;
  }
}
