import { quoteIdentifier } from '../server/identifiers.js';
import { UNKNOWN_TIMELINE } from '../server/timeline.js';
import { formatLsn, parseLsn } from '../model/lsn.js';
import type {
  CheckpointContext,
  CheckpointHome,
  CheckpointKeeper,
  StoredCheckpoint,
} from '../model/checkpoint.js';
import type { Lsn } from '../model/lsn.js';
import type { Transaction } from '../model/transaction.js';
import { CheckpointIdentityError } from './checkpoint-identity-error.js';
import { locateCheckpointTable } from './checkpoint-location.js';
import type { CheckpointLocation } from './checkpoint-location.js';
import { fetchRow, presentTextIn, textIn } from './checkpoint-query.js';
import type { CheckpointQuery, CheckpointRow } from './checkpoint-query.js';
import { checkpointStatements } from './checkpoint-statements.js';
import type { CheckpointStatements } from './checkpoint-statements.js';

/** Options of a {@link CheckpointTable}. */
export interface CheckpointTableOptions {
  /**
   * Name of the table, without schema: the search path of the connection decides where it is.
   *
   * @default 'replicant_checkpoints'
   */
  readonly table?: string;
}

/** What {@link CheckpointTable.advance} needs of a transaction. */
export type AppliedTransaction = Pick<
  Transaction,
  'slotName' | 'commitLsn' | 'commitEndLsn'
>;

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
  #binding: { readonly pipeline: string; readonly slotName: string } | null =
    null;
  #server: Pick<CheckpointContext, 'systemIdentifier' | 'timeline'> | null =
    null;
  #statements: CheckpointStatements | null = null;
  #advancedTo: Lsn | null = null;
  /** See {@link keepRelations}. */
  #relations: string | null = null;

  /**
   * @param query runs one statement on the primary server of the sink's database, outside any transaction, and resolves with
   * the rows or with `{ rows }`
   * @throws {ReplicantConfigError} when PostgreSQL does not accept the table's name
   */
  constructor(query: CheckpointQuery, options: CheckpointTableOptions = {}) {
    this.#query = query;
    this.#quotedTable = quoteIdentifier(
      options.table ?? 'replicant_checkpoints',
      'table',
    );
  }

  /**
   * Ties this instance to its pipeline. Called by the library when it finds the sink.
   *
   * @throws {Error} when it serves another pipeline or slot already
   * @internal
   */
  bindTo(binding: Pick<CheckpointContext, 'pipeline' | 'slotName'>): void {
    const { pipeline, slotName } = binding;
    const bound = this.#binding;
    if (
      bound !== null &&
      (bound.pipeline !== pipeline || bound.slotName !== slotName)
    ) {
      throw new Error(
        `One CheckpointTable serves one pipeline: this one keeps slot ${bound.slotName} of pipeline ${bound.pipeline}. Create another for slot ${slotName} of pipeline ${pipeline}; both may use the same table.`,
      );
    }
    this.#binding = { pipeline, slotName };
  }

  identify(context: CheckpointContext): void {
    this.bindTo(context);
    this.#relations = null;
    this.#server = {
      systemIdentifier: context.systemIdentifier,
      timeline: context.timeline,
    };
  }

  /** Creates the table when it is missing. Rejects with the error of the query function when a query fails. */
  async load(): Promise<StoredCheckpoint | null> {
    const { slotName } = this.#bound();
    this.#advancedTo = null;
    const statements = checkpointStatements((await this.#locate()).quotedName);
    const row = await fetchRow(this.#query, statements.load, [slotName]);
    this.#statements = statements;
    const systemIdentifier = textIn(row, 'server');
    if (systemIdentifier === null) return null;
    return {
      commitLsn: lsnIn(row, 'committed'),
      confirmedLsn: lsnIn(row, 'confirmed'),
      systemIdentifier,
      timeline: Number(presentTextIn(row, 'timeline')),
      relations: textIn(row, 'relations'),
    };
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
  ): Promise<boolean> {
    const { slotName } = this.#bound();
    if (tx.slotName !== slotName) {
      throw new Error(
        `This CheckpointTable keeps slot ${slotName} and was given a transaction of slot ${tx.slotName}. Use the CheckpointTable of the sink that received it.`,
      );
    }
    const end = tx.commitEndLsn === null ? null : formatLsn(tx.commitEndLsn);
    const written = await this.#write(query, 'advance', [
      formatLsn(tx.commitLsn),
      end,
    ]);
    if (written) this.#advancedTo = tx.commitLsn;
    return written;
  }

  async confirm(lsn: Lsn): Promise<void> {
    await this.#write(this.#query, 'confirm', [formatLsn(lsn)]);
  }

  async retract(commitLsn: Lsn): Promise<void> {
    const { slotName } = this.#bound();
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
    const { oid, quotedName } = await this.#locate();
    const facts = await fetchRow(
      this.#query,
      `SELECT current_database()::text AS database,
  has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')::text AS permitted`,
      [],
    );
    return {
      // Every role may call it unless somebody revoked that. Asked apart: a call that is not permitted fails the whole query.
      systemIdentifier:
        presentTextIn(facts, 'permitted') === 'true'
          ? await this.#ownSystemIdentifier()
          : null,
      database: presentTextIn(facts, 'database'),
      relationOid: oid,
      quotedName,
    };
  }

  async #ownSystemIdentifier(): Promise<string> {
    const row = await fetchRow(
      this.#query,
      'SELECT system_identifier::text AS server FROM pg_catalog.pg_control_system()',
      [],
    );
    return presentTextIn(row, 'server');
  }

  /** Whether the row was written; it is not when what it holds is as far already. */
  async #write(
    query: CheckpointQuery,
    statement: 'advance' | 'confirm',
    positions: (string | null)[],
  ): Promise<boolean> {
    const { pipeline, slotName } = this.#bound();
    if (this.#server === null || this.#statements === null) {
      throw new Error(
        `The checkpoint of slot ${slotName} cannot be written before pipeline ${pipeline} has connected and read it.`,
      );
    }
    const { systemIdentifier, timeline } = this.#server;
    const row = await fetchRow(query, this.#statements[statement], [
      slotName,
      systemIdentifier,
      String(timeline),
      this.#relations,
      ...positions,
    ]);
    if (textIn(row, 'server') !== null) return true;
    // Rare: the row holds as much already, or it belongs to another server. It is locked, so this sees what the statement saw.
    const stored = await fetchRow(query, this.#statements.load, [slotName]);
    const isOurs =
      textIn(stored, 'server') === systemIdentifier &&
      (timeline === UNKNOWN_TIMELINE ||
        Number(textIn(stored, 'timeline')) <= timeline);
    if (!isOurs) throw new CheckpointIdentityError(slotName);
    return false;
  }

  #locate(): Promise<CheckpointLocation> {
    return locateCheckpointTable(this.#query, this.#quotedTable);
  }

  #bound(): { readonly pipeline: string; readonly slotName: string } {
    if (this.#binding === null) {
      throw new Error(
        'This CheckpointTable belongs to no pipeline yet: it must stand on a property marked @Checkpoint() of a sink class, and the application must have started.',
      );
    }
    return this.#binding;
  }
}

function lsnIn(row: CheckpointRow, column: string): Lsn | null {
  const text = textIn(row, column);
  if (text === null) return null;
  const lsn = parseLsn(text);
  if (lsn === null) {
    throw new TypeError(
      `The checkpoint table holds no position in the column read as ${column}.`,
    );
  }
  return lsn;
}
