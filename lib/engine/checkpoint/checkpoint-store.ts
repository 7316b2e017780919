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
import type { Lsn } from '../model/lsn.js';
import type { ResolvedCheckpointStoreOptions } from '../options/delivery-options.js';
import type { SessionTarget } from '../server/session.js';
import { requireProgressShape } from './checkpoint-shape.js';
import { addProgressColumn } from './progress-column.js';
import { judgeStoreError } from './store-faults.js';
import {
  isSame,
  isStored,
  NOTHING_STORED,
  putPositions,
  putProgress,
  readRow,
  stateOf,
  type StoreState,
  type StoreWrite,
} from './store-row.js';
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
  #row: StoreState | null | undefined = undefined;
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
    const state = stored && stateOf(stored);
    if (this.#row !== undefined && !isSame(this.#row, state)) throw fenced();
    this.#advancedTo = null;
    this.#row = state;
    return stored;
  }

  async commit(commitLsn: Lsn, endLsn: Lsn): Promise<void> {
    const state = this.#state();
    await this.#move(
      {
        ...state,
        commitLsn: later(state.commitLsn, commitLsn),
        confirmedLsn: later(state.confirmedLsn, endLsn),
      },
      commitLsn,
    );
    this.#advancedTo = commitLsn;
  }

  async confirm(lsn: Lsn): Promise<void> {
    const state = this.#state();
    await this.#move({
      ...state,
      confirmedLsn: later(state.confirmedLsn, lsn),
    });
  }

  /** Rejects like {@link PostgresCheckpointStore.load}, and with `checkpoint/progress_column`. */
  async prepareProgress(): Promise<void> {
    await this.#reading(async ({ query, location }) => {
      await addProgressColumn(query, location);
      await requireProgressShape(query, location);
    });
  }

  async storeProgress(progress: string): Promise<void> {
    const next = { ...this.#state(), progress };
    await this.#write(next, putProgress);
  }

  get storedProgress(): string | null {
    return this.#row?.progress ?? null;
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
  async #move(next: StoreState, lsn?: Lsn): Promise<void> {
    const relations = this.#relations;
    if (relations === null && isSame(this.#state(), next)) return;
    await this.#write(
      next,
      (store, write) => putPositions(store, write, relations),
      lsn === undefined ? {} : { lsn },
    );
  }

  /** Writes, and tries again as the options say: whatever comes later must not be done before. */
  async #write(
    next: StoreState,
    put: (store: OpenedStore, write: StoreWrite) => Promise<boolean>,
    facts: Pick<HaltFacts, 'lsn'> = {},
  ): Promise<void> {
    const { maxRetries } = this.#ports.options;
    const context = this.#connected();
    const write = { context, row: this.#row ?? null, next };
    for (let attempt = 1; ; attempt += 1) {
      try {
        const stored = await this.#session.run(
          async (store) =>
            (await put(store, write)) || (await isStored(store, write)),
        );
        if (stored) {
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

  #state(): StoreState {
    if (this.#row === undefined)
      throw new Error('The checkpoint must be read before it is written.');
    return this.#row ?? NOTHING_STORED;
  }
}

function fenced(): ConnectionFault {
  return new ConnectionFault(
    'another process has written the checkpoint of this slot',
  );
}

function later(stored: Lsn | null, lsn: Lsn): Lsn {
  return stored === null || lsn > stored ? lsn : stored;
}

function exhausted(reason: string, attempts: number): string {
  return `${reason}, at ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}`;
}
