import { tableName } from '../options/option-checks.js';
import { quoteIdentifier } from '../server/identifiers.js';
import { UNKNOWN_TIMELINE } from '../server/timeline.js';
import { formatLsn } from '../model/lsn.js';
import type {
  CheckpointContext,
  CheckpointHome,
  CheckpointKeeper,
  StoredCheckpoint,
} from '../model/checkpoint.js';
import type { Lsn } from '../model/lsn.js';
import type { SnapshotContext } from '../model/snapshot.js';
import { endsOf, isNew } from './applied-batch.js';
import type { AppliedTransaction } from './applied-batch.js';
import { readCheckpointHome } from './checkpoint-home.js';
import { CheckpointIdentityError } from './checkpoint-identity-error.js';
import { locateCheckpointTable } from './checkpoint-location.js';
import type { CheckpointLocation } from './checkpoint-location.js';
import { fetchRow, textIn } from './checkpoint-query.js';
import type { CheckpointQuery } from './checkpoint-query.js';
import { checkpointStatements } from './checkpoint-statements.js';
import type { CheckpointStatements } from './checkpoint-statements.js';
import { addProgressColumn } from './progress-column.js';
import { ProgressRow } from './progress-row.js';
import { progressStatements } from './progress-statements.js';
import type { ProgressStatements } from './progress-statements.js';
import { storedCheckpoint } from './stored-checkpoint.js';
import { TableBinding } from './table-binding.js';

export type { AppliedTransaction } from './applied-batch.js';

/** Options of a {@link CheckpointTable}. */
export interface CheckpointTableOptions {
  /**
   * Name of the table, without schema: the search path of the connection decides where it is.
   *
   * @default 'replicant_checkpoints'
   */
  readonly table?: string;
}

/**
 * Keeps the position of a pipeline in a table beside the sink's own data, so that both change in one database transaction:
 * at-least-once delivery then takes effect once. One instance serves one pipeline; its row is keyed by slot name, so many
 * pipelines share a table.
 *
 * The table must not be part of the pipeline's own publication.
 *
 * @example
 * ```ts
 * @Checkpoint()
 * readonly checkpoints = new CheckpointTable((sql, values) => this.db.query(sql, values));
 * ```
 *
 * @see {@link https://www.postgresql.org/docs/current/logicaldecoding-explanation.html | Logical Decoding Concepts}:
 * after a crash "recent changes will be sent again", and the client must not handle them twice
 */
export class CheckpointTable implements CheckpointKeeper {
  readonly #query: CheckpointQuery;
  readonly #quotedTable: string;
  readonly #binding = new TableBinding();
  #server: Pick<CheckpointContext, 'systemIdentifier' | 'timeline'> | null =
    null;
  #statements:
    (CheckpointStatements & { readonly progress: ProgressStatements }) | null =
    null;
  #advancedTo: Lsn | null = null;
  readonly #progress = new ProgressRow();
  /** See {@link keepRelations}. */
  #relations: string | null = null;

  /**
   * @param query runs one statement on the primary server of the sink's database, outside any transaction, and resolves with
   * the rows or with `{ rows }`
   * @throws {ReplicantConfigError} when PostgreSQL does not accept the table's name
   */
  constructor(query: CheckpointQuery, options: CheckpointTableOptions = {}) {
    this.#query = query;
    const table = tableName('table', options.table, 'replicant_checkpoints');
    this.#quotedTable = quoteIdentifier(table, 'table');
  }

  /**
   * Ties this instance to its pipeline. Called by the library when it finds the sink.
   *
   * @throws {Error} when it serves another pipeline or slot already
   * @internal
   */
  bindTo(binding: Pick<CheckpointContext, 'pipeline' | 'slotName'>): void {
    this.#binding.bindTo(binding);
  }

  identify(context: CheckpointContext): void {
    this.bindTo(context);
    this.#relations = null;
    this.#progress.forget();
    this.#server = {
      systemIdentifier: context.systemIdentifier,
      timeline: context.timeline,
    };
  }

  /** Creates the table when it is missing. Rejects with the error of the query function when a query fails. */
  async load(): Promise<StoredCheckpoint | null> {
    const { slotName } = this.#binding.bound;
    this.#advancedTo = null;
    const { quotedName } = await this.#locate();
    const statements = checkpointStatements(quotedName);
    const row = await fetchRow(this.#query, statements.load, [slotName]);
    const progress = progressStatements(quotedName);
    this.#statements = { ...statements, progress };
    const stored = storedCheckpoint(row);
    this.#progress.read(stored);
    return stored;
  }

  /**
   * Moves the checkpoint to a transaction, inside the database transaction that writes the transaction's rows. Of two writers
   * with the same transaction the second waits for the first one's commit and gets `false`; under `REPEATABLE READ` and
   * `SERIALIZABLE` it gets PostgreSQL's serialization error (SQLSTATE 40001) instead.
   *
   * @param query runs one statement inside the sink's open transaction
   * @returns `true` when the transaction is new, `false` when it was applied before and must be left out
   * @throws {CheckpointIdentityError} when the row belongs to another server, or to a later timeline of this one
   */
  async advance(
    query: CheckpointQuery,
    tx: AppliedTransaction,
  ): Promise<boolean>;
  /**
   * Moves the checkpoint to the end of a batch, as the other form does for one transaction, and says which of the batch are
   * new: after a crash a batch may be cut elsewhere, and begin with what was applied before.
   *
   * @example
   * ```ts
   * @OnBatch()
   * async apply(transactions: readonly Transaction[]): Promise<void> {
   *   await this.db.transaction(async (em) => {
   *     const query: CheckpointQuery = (sql, values) => em.query(sql, values);
   *     for (const tx of await this.checkpoints.advance(query, transactions)) {
   *       for await (const change of tx.changes) await this.upsert(em, change);
   *     }
   *   });
   * }
   * ```
   *
   * @param query runs one statement inside the sink's open transaction
   * @param transactions at least one, in ascending order of their commits, as they are delivered
   * @returns those that are new, in order; the others were applied before and must be left out
   * @throws {CheckpointIdentityError} when the row belongs to another server, or to a later timeline of this one
   */
  async advance<T extends AppliedTransaction>(
    query: CheckpointQuery,
    transactions: readonly T[],
  ): Promise<readonly T[]>;
  async advance(
    query: CheckpointQuery,
    applied: AppliedTransaction | readonly AppliedTransaction[],
  ): Promise<boolean | readonly AppliedTransaction[]> {
    if (isBatch(applied)) return this.#advanceBatch(query, applied);
    this.#binding.requireOwn(applied);
    return (await this.#advanceOver(query, applied, applied)) === null;
  }

  /**
   * Stores {@link SnapshotContext.progress}, inside the database transaction that writes the rows of the call, so that a later start goes on
   * behind them. Does nothing where there is none to store, in the mode `initial`.
   *
   * @param query runs one statement inside the sink's open transaction
   * @throws {CheckpointMovedError} when another process has written the row since this one read it: the transaction must be rolled back
   */
  async keepProgress(
    query: CheckpointQuery,
    { progress }: Pick<SnapshotContext, 'progress'>,
  ): Promise<void> {
    if (progress === null) return;
    const { statements, ...row } = this.#connected();
    const target = { ...row, statements: statements.progress };
    await this.#progress.write(query, target, progress);
  }

  /** Stores it without a transaction. */
  async storeProgress(progress: string): Promise<void> {
    await this.keepProgress(this.#query, { progress });
  }

  get storedProgress(): string | null {
    return this.#progress.progress;
  }

  /** Adds the column for progress to a table that was made without. */
  async prepareProgress(): Promise<void> {
    await addProgressColumn(this.#query, await this.#locate());
  }

  async confirm(lsn: Lsn): Promise<void> {
    await this.#write(this.#query, 'confirm', [formatLsn(lsn)]);
  }

  async retract(commitLsn: Lsn): Promise<void> {
    const { slotName } = this.#binding.bound;
    if (this.#server === null || this.#statements === null) return;
    await fetchRow(this.#query, this.#statements.retract, [
      slotName,
      this.#server.systemIdentifier,
      formatLsn(commitLsn),
      this.#relations,
    ]);
  }

  keepRelations(patch: string | null): void {
    this.#relations = patch;
  }

  get advancedTo(): Lsn | null {
    return this.#advancedTo;
  }

  async home(): Promise<CheckpointHome> {
    return readCheckpointHome(this.#query, await this.#locate());
  }

  async #advanceBatch(
    query: CheckpointQuery,
    transactions: readonly AppliedTransaction[],
  ): Promise<readonly AppliedTransaction[]> {
    for (const tx of transactions) this.#binding.requireOwn(tx);
    const { first, last } = endsOf(transactions);
    const stored = await this.#advanceOver(query, first, last);
    if (stored === null) return transactions;
    const left = transactions.filter((tx) => isNew(tx, stored));
    const next = left[0];
    if (next === undefined) return left;
    if ((await this.#advanceOver(query, next, last)) !== null) {
      throw new Error(
        `The checkpoint of slot ${last.slotName} moved between two statements of advance(): the query function must run them in one open transaction.`,
      );
    }
    return left;
  }

  /** See {@link CheckpointTable.#write}. */
  async #advanceOver(
    query: CheckpointQuery,
    first: AppliedTransaction,
    last: AppliedTransaction,
  ): Promise<StoredCheckpoint | null> {
    const end =
      last.commitEndLsn === null ? null : formatLsn(last.commitEndLsn);
    const stored = await this.#write(query, 'advance', [
      formatLsn(last.commitLsn),
      end,
      formatLsn(first.commitLsn),
    ]);
    if (stored === null) this.#advancedTo = last.commitLsn;
    this.#progress.advanced(last.commitLsn);
    return stored;
  }

  /** What the row holds when it was not written, which is as far already; `null` when it was. */
  async #write(
    query: CheckpointQuery,
    statement: 'advance' | 'confirm',
    positions: (string | null)[],
  ): Promise<StoredCheckpoint | null> {
    const { slotName, systemIdentifier, timeline, statements } =
      this.#connected();
    const row = await fetchRow(query, statements[statement], [
      slotName,
      systemIdentifier,
      String(timeline),
      this.#relations,
      ...positions,
    ]);
    if (textIn(row, 'server') !== null) return null;
    // Rare: the row holds as much already, or it belongs to another server. It is locked, so this sees what the statement saw.
    const stored = storedCheckpoint(
      await fetchRow(query, statements.load, [slotName]),
    );
    const isOurs =
      stored?.systemIdentifier === systemIdentifier &&
      (timeline === UNKNOWN_TIMELINE || stored.timeline <= timeline);
    if (!isOurs) throw new CheckpointIdentityError(slotName);
    return stored;
  }

  #connected() {
    const { pipeline, slotName } = this.#binding.bound;
    if (this.#server === null || this.#statements === null) {
      throw new Error(
        `The checkpoint of slot ${slotName} cannot be written before pipeline ${pipeline} has connected and read it.`,
      );
    }
    return { slotName, ...this.#server, statements: this.#statements };
  }

  #locate(): Promise<CheckpointLocation> {
    return locateCheckpointTable(this.#query, this.#quotedTable);
  }
}

/** `Array.isArray` does not tell a readonly array from what it holds. */
function isBatch(
  applied: AppliedTransaction | readonly AppliedTransaction[],
): applied is readonly AppliedTransaction[] {
  return Array.isArray(applied);
}
