import { decodeProgress } from '../../lib/engine/model/progress-token.js';
import { compareTables } from '../support/compare-tables.js';
import { readSlot } from '../support/logical-slot.js';
import { waitFor } from '../support/wait-for.js';
import {
  type CopyExamination,
  examineCopies,
  FORGET_COPIES,
} from './examine-copies.js';
import { type Examination, examine } from './examine.js';
import type { Place } from './plan.js';
import type { Stage } from './stage.js';

const COPY_MS = 120_000;
/** Large transactions may come before a chunk. */
const REACH_MS = 90_000;

/** Those of an initial copy: what follows them has to be told that the copy is incomplete. */
const IN_PAGES = new Set<Place>(['in a page', 'before the ack of a page']);

type Found = Examination & CopyExamination;

interface Stored extends Record<string, unknown> {
  positioned: boolean;
  progress: string | null;
}

/** The copies of a stage, one after the other: each that comes to its end is compared with the source, and another begins. */
export class Copies {
  /** Copies that came to their end. */
  count = 0;
  /** Processes that were killed while they copied. */
  kills = 0;
  #before: Partial<Found> = {};

  constructor(private readonly stage: Stage) {}

  /** Whether a kill at this place is meant to meet a copy: an initial one has nothing beside it. */
  wantedAt(place: Place): boolean {
    const { snapshot } = this.stage.promise;
    if (snapshot !== 'initial') return snapshot !== null;
    return IN_PAGES.has(place) || place === 'at a random moment';
  }

  /** When the copy has come to its end, compares it with the source and begins another. */
  async keepGoing(): Promise<void> {
    if (!(await this.#isComplete())) return;
    const { stage } = this;
    await stage.application.says('streaming');
    await stage.idle();
    this.count += 1;
    await (stage.promise.snapshot === 'initial'
      ? this.#beginAnew()
      : this.#askAgain());
    stage.load.resume();
  }

  /** Waits until the application stands at a point; `false` when the copy comes to its end before. */
  async standsOrEnds(point: Place): Promise<boolean> {
    const { application } = this.stage;
    const stands = () => application.said.includes(`stands ${point}`);
    await waitFor(
      async () => {
        application.refuseEnd();
        return stands() || (await this.#isComplete());
      },
      { timeout: REACH_MS, message: `the application to stand ${point}` },
    );
    return stands();
  }

  /** Beside an initial copy there is no stream in which the application could stand. */
  async makeRoomFor(place: Place): Promise<void> {
    const { promise, application } = this.stage;
    if (promise.snapshot === 'initial' && !this.wantedAt(place))
      await application.says('streaming', { timeout: COPY_MS });
  }

  async noteKill(): Promise<void> {
    if (this.stage.promise.snapshot === null) return;
    if (!(await this.#isComplete())) this.kills += 1;
  }

  /** Starts the application after a kill; one whose initial copy was killed has to refuse to go on. */
  async start(killed: Place): Promise<void> {
    const { stage } = this;
    const incomplete = IN_PAGES.has(killed);
    if (incomplete && (await readSlot(stage.source, stage.slot)) === null)
      throw new Error('A copy was killed, and left no slot.');
    stage.start();
    if (incomplete)
      await stage.application.says('incomplete', { timeout: REACH_MS });
  }

  /** Waits until everything is copied. */
  async end(): Promise<void> {
    if (this.stage.promise.snapshot === null) return;
    await waitFor(
      async () => {
        this.stage.application.refuseEnd();
        return this.#isComplete();
      },
      { timeout: COPY_MS, message: 'the copy to end' },
    );
    this.count += 1;
  }

  /** What was found, with what was found of earlier copies. */
  andThose(found: Found): Found {
    const { maxDuplicatesPerCrash, maxChunksPerCrash, transactions } = found;
    const before = this.#before;
    const sum = (figure: keyof Found) => found[figure] + (before[figure] ?? 0);
    return {
      lost: sum('lost'),
      appliedTwice: sum('appliedTwice'),
      redelivered: sum('redelivered'),
      maxDuplicatesPerCrash: Math.max(
        maxDuplicatesPerCrash,
        before.maxDuplicatesPerCrash ?? 0,
      ),
      transactions,
      differences: sum('differences'),
      chunks: sum('chunks'),
      copiedTwice: sum('copiedTwice'),
      chunksAgain: sum('chunksAgain'),
      maxChunksPerCrash: Math.max(
        maxChunksPerCrash,
        before.maxChunksPerCrash ?? 0,
      ),
      begunAgain: sum('begunAgain'),
    };
  }

  /** Asks for everything once more. Transactions and calls are examined in the end. */
  async #askAgain(): Promise<void> {
    const { source, target, application } = this.stage;
    const { missing, extra, different } = await compareTables(source, target);
    const differences =
      (this.#before.differences ?? 0) + missing + extra + different;
    this.#before = { ...this.#before, differences };
    application.tell('copy');
    await waitFor(
      async () => {
        application.refuseEnd();
        return !(await this.#isComplete());
      },
      { timeout: REACH_MS, message: 'another copy to begin' },
    );
  }

  /** Takes away what makes the application one that has begun. The rows of the mirror stay where they are. */
  async #beginAnew(): Promise<void> {
    const { stage } = this;
    const { source, target, promise } = stage;
    await stage.close();
    this.#before = this.andThose({
      ...(await examine(source, target, promise)),
      ...(await examineCopies(target, promise)),
    });
    await source.query('select pg_drop_replication_slot($1)', [stage.slot]);
    await target.query(
      `delete from replicant_checkpoints; truncate ledger; ${FORGET_COPIES}`,
    );
    stage.start();
  }

  /** By what is stored: in chunks, that everything is copied; initially, where the stream begins. */
  async #isComplete(): Promise<boolean> {
    const { stage } = this;
    const [{ made } = { made: false }] = await stage.target.query<{
      made: boolean;
    }>(`select to_regclass('replicant_checkpoints') is not null as made`);
    if (!made) return false;
    const [stored] = await stage.target.query<Stored>(
      `select coalesce(commit_lsn, confirmed_lsn) is not null as positioned, snapshot_progress as progress
         from replicant_checkpoints where slot_name = $1`,
      [stage.slot],
    );
    if (stored === undefined) return false;
    return stage.promise.snapshot === 'initial'
      ? stored.positioned
      : stored.progress !== null && decodeProgress(stored.progress).complete;
  }
}
