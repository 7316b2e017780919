import { setTimeout as sleep } from 'node:timers/promises';
import type {
  CheckpointContext,
  CheckpointHome,
  CheckpointStore,
  StoredCheckpoint,
} from '../model/checkpoint.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import type { HaltFacts } from '../model/halt.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import type { ResolvedCheckpointStoreOptions } from '../options/delivery-options.js';
import type { SessionTarget } from '../server/session.js';
import { fetchRow, textIn } from './checkpoint-query.js';
import { storedCheckpoint } from './stored-checkpoint.js';
import { judgeStoreError } from './store-faults.js';
import { StoreSession } from './store-session.js';
import type { OpenedStore } from './store-session.js';

/** What a store is made of. */
export interface CheckpointStorePorts {
  /** Where the table is. When its signal is aborted, what runs rejects, and so does every later call. */
  readonly target: SessionTarget;
  readonly options: Pick<
    ResolvedCheckpointStoreOptions,
    'table' | 'maxRetries' | 'retryBackoffMs'
  >;
  /** A read or a write failed, for the `attempt`th time in a row, and is tried again after `retryBackoffMs`. */
  retrying(reason: string, attempt: number): void;
}

/** The two positions of a row. */
type StoredPositions = Pick<StoredCheckpoint, 'commitLsn' | 'confirmedLsn'>;

/** What a write did: the row holds it, or another process has moved the row. */
type WriteOutcome = 'stored' | 'fenced';

/**
 * The checkpoint that the library keeps in a table of its own, for a sink that keeps none: the same table as that of
 * `CheckpointTable`, written on a session of its own after the sink has done its work.
 *
 * A write goes by the positions that this instance has read or written last, and leaves a row alone that holds others: whoever
 * moved, reset or removed it is not overwritten by a process that was cut off.
 */
export class PostgresCheckpointStore implements CheckpointStore {
  readonly #ports: CheckpointStorePorts;
  readonly #session: StoreSession;
  #context: CheckpointContext | null = null;
  /** What the row held when it was last read or written; `null` when there was none, absent before it was read. */
  #row: StoredPositions | null | undefined = undefined;
  #relations: string | null = null;
  #advancedTo: Lsn | null = null;
  /** Failed reads in a row. */
  #failedReads = 0;

  constructor(ports: CheckpointStorePorts) {
    this.#ports = ports;
    this.#session = new StoreSession(ports.target, ports.options.table);
  }

  identify(context: CheckpointContext): void {
    this.#context = context;
    this.#relations = null;
    this.#row = undefined;
  }

  /**
   * Read again without {@link identify}, the row must be as this instance knows it.
   *
   * @throws {HaltError} `checkpoint_store/schema`, `checkpoint_store/refused`, `checkpoint_store/unavailable`
   * @throws {ConnectionFault} when it fails and may be tried again, with the delay; and when another process has written the row
   */
  async load(): Promise<StoredCheckpoint | null> {
    const { slotName } = this.#connected();
    const stored = await this.#reading((store) => readRow(store, slotName));
    if (this.#row !== undefined && !isSame(this.#row, stored)) throw fenced();
    this.#advancedTo = null;
    this.#row = stored;
    return stored;
  }

  async commit(commitLsn: Lsn, endLsn: Lsn): Promise<void> {
    const { commitLsn: committed, confirmedLsn } = this.#positions();
    await this.#move(
      {
        commitLsn: later(committed, commitLsn),
        confirmedLsn: later(confirmedLsn, endLsn),
      },
      commitLsn,
    );
    this.#advancedTo = commitLsn;
  }

  async confirm(lsn: Lsn): Promise<void> {
    const { commitLsn, confirmedLsn } = this.#positions();
    await this.#move({ commitLsn, confirmedLsn: later(confirmedLsn, lsn) });
  }

  keepRelations(patch: string | null): void {
    this.#relations = patch;
  }

  get advancedTo(): Lsn | null {
    return this.#advancedTo;
  }

  /** Rejects like {@link PostgresCheckpointStore.load}. */
  async home(): Promise<CheckpointHome> {
    return this.#reading((store) => Promise.resolve(store.home));
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  /** Counts failures in a row, through which the pipeline connects anew each time. */
  async #reading<T>(read: (store: OpenedStore) => Promise<T>): Promise<T> {
    try {
      const answer = await this.#session.run(read);
      this.#failedReads = 0;
      return answer;
    } catch (error) {
      const { maxRetries, retryBackoffMs } = this.#ports.options;
      const reason = this.#mayPass(error, 'reading');
      this.#failedReads += 1;
      const attempt = this.#failedReads;
      if (attempt > maxRetries) {
        this.#failedReads = 0;
        throw new HaltError('checkpoint_store/unavailable', {
          detail: exhausted(reason, attempt),
        });
      }
      this.#ports.retrying(reason, attempt);
      throw new ConnectionFault(
        `the checkpoint store is not available: ${reason}`,
        retryBackoffMs,
      );
    }
  }

  /** Writes positions unless there is nothing new about them. */
  async #move(next: StoredPositions, lsn?: Lsn): Promise<void> {
    const isNew = this.#relations !== null || !isSame(this.#positions(), next);
    if (isNew) await this.#write(next, lsn);
  }

  /** Writes positions, and tries again as the options say: whatever comes later must not be done before. */
  async #write(next: StoredPositions, lsn?: Lsn): Promise<void> {
    const { maxRetries } = this.#ports.options;
    const facts = lsn === undefined ? {} : { lsn };
    for (let attempt = 1; ; attempt += 1) {
      try {
        const outcome = await this.#session.run((s) => this.#put(s, next));
        if (outcome === 'stored') {
          this.#row = next;
          return;
        }
        break;
      } catch (error) {
        const reason = this.#mayPass(error, 'writing', facts);
        if (attempt > maxRetries) {
          throw new HaltError('checkpoint_store_failed', {
            ...facts,
            detail: exhausted(reason, attempt),
          });
        }
        this.#ports.retrying(reason, attempt);
        await this.#pause();
      }
    }
    throw fenced();
  }

  async #put(
    { query, statements }: OpenedStore,
    next: StoredPositions,
  ): Promise<WriteOutcome> {
    const { slotName, systemIdentifier, timeline } = this.#connected();
    const row = this.#row ?? null;
    const written = await fetchRow(
      query,
      row === null ? statements.begin : statements.move,
      [
        slotName,
        systemIdentifier,
        String(timeline),
        this.#relations,
        textOf(next.commitLsn),
        textOf(next.confirmedLsn),
        ...(row === null
          ? []
          : [textOf(row.commitLsn), textOf(row.confirmedLsn)]),
      ],
    );
    if (textIn(written, 'server') !== null) return 'stored';
    // The answer of an attempt before may have been lost.
    const found = await readRow({ query, statements }, slotName);
    return found?.systemIdentifier === systemIdentifier && isSame(found, next)
      ? 'stored'
      : 'fenced';
  }

  /**
   * What is said of an error that may pass by itself.
   *
   * @throws {HaltError} for one that does not
   * @throws {ConnectionFault} when the store was told to stop
   */
  #mayPass(
    error: unknown,
    doing: 'reading' | 'writing',
    facts: Pick<HaltFacts, 'lsn'> = {},
  ): string {
    this.#requireWanted();
    if (error instanceof HaltError) throw error;
    const { reason, permanent } = judgeStoreError(error);
    if (permanent) {
      throw new HaltError('checkpoint_store/refused', {
        ...facts,
        detail: `${reason} while ${doing} the checkpoint`,
      });
    }
    return reason;
  }

  async #pause(): Promise<void> {
    const { signal } = this.#ports.target;
    await sleep(this.#ports.options.retryBackoffMs, undefined, {
      signal,
    }).catch(() => this.#requireWanted());
  }

  #requireWanted(): void {
    if (this.#ports.target.signal.aborted)
      throw new ConnectionFault('the pipeline was stopped');
  }

  #connected(): CheckpointContext {
    if (this.#context === null)
      throw new Error('The checkpoint store was not told the server yet.');
    return this.#context;
  }

  #positions(): StoredPositions {
    if (this.#row === undefined)
      throw new Error('The checkpoint must be read before it is written.');
    return this.#row ?? { commitLsn: null, confirmedLsn: null };
  }
}

async function readRow(
  { query, statements }: Pick<OpenedStore, 'query' | 'statements'>,
  slotName: string,
): Promise<StoredCheckpoint | null> {
  return storedCheckpoint(await fetchRow(query, statements.load, [slotName]));
}

function isSame(
  one: StoredPositions | null,
  other: StoredPositions | null,
): boolean {
  return (
    (one === null) === (other === null) &&
    one?.commitLsn === other?.commitLsn &&
    one?.confirmedLsn === other?.confirmedLsn
  );
}

function fenced(): ConnectionFault {
  return new ConnectionFault(
    'another process has written the checkpoint of this slot',
  );
}

function later(stored: Lsn | null, lsn: Lsn): Lsn {
  return stored === null || lsn > stored ? lsn : stored;
}

function textOf(lsn: Lsn | null): string | null {
  return lsn === null ? null : formatLsn(lsn);
}

function exhausted(reason: string, attempts: number): string {
  return `${reason}, at ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}`;
}
