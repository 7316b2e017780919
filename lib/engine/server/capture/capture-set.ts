import type { CheckpointHome } from '../../model/checkpoint.js';
import type { HaltError } from '../../model/halt.js';
import type { HaltCode } from '../../model/halts.js';
import type { CatalogTable, TableName } from '../../model/relation.js';
import type { CommandSession, TextRow } from '../session.js';

/** Something that the server says of its own accord. */
export interface Notice {
  /** SQLSTATE. */
  readonly code: string;
  /** The file of the server's source code that says it, which no language changes; empty when that is not told. */
  readonly file: string;
}

/** What a pipeline captures, and by which output plugin: all that the options and the catalog say of it. */
export interface CaptureSet {
  /** The output plugin, as slots name it. */
  readonly plugin: string;
  /** Names of publications; none where another plugin is used. */
  readonly publications: readonly string[];
  /**
   * Makes sure that everything in it is there and can be captured whole.
   *
   * @throws {HaltError}
   */
  check(session: CommandSession): Promise<void>;
  /**
   * Makes sure that it does not have the table in which the checkpoint is stored: each transaction would write the checkpoint, and each
   * checkpoint would be a transaction.
   *
   * @throws {HaltError} `preflight/self_feeding`
   */
  refuseSelfFeeding(
    session: CommandSession,
    home: CheckpointHome,
  ): Promise<void>;
  /**
   * Finds what is odd about it, without losing anything.
   *
   * @param asked - tables that the sink asks for by name
   * @returns a sentence for each kind of oddity
   */
  advise(session: CommandSession, asked: readonly string[]): Promise<string[]>;
  /** Options of START_REPLICATION, each as SQL. */
  readonly startOptions: readonly string[];
  /** The halt of an error with this SQLSTATE with which the server answered the creation of the slot or START_REPLICATION. */
  refusal(sqlstate: string): HaltCode | null;
  /** The halt of a notice that the server sends while it streams; `null` for one after which the stream can be followed. */
  noticed(notice: Notice): HaltError | null;
  /**
   * Common table expressions, the last of which is `tables (oid, attnums, agreed, publications, row_filter)`: OIDs of the tables whose rows it
   * has, numbers of their columns, whether all who carry a table agree on these, their names, and a condition that rows have to meet.
   */
  readonly tablesSql: string;
  /** Names of the tables whose rows it has, as changes have them. Reads catalogs alone, so that no lock on a table is waited for. */
  names(session: CommandSession): Promise<readonly TableName[]>;
  /** Its tables, where the plugin does not describe them by itself. Reads catalogs alone. */
  catalog(session: CommandSession): Promise<readonly CatalogTable[]>;
  /** Milliseconds between two looks at {@link CaptureSet.catalog} while it streams; `null` where the plugin shows all that becomes of a table. */
  readonly schemaCheckInterval: number | null;
  /** Everything by which it is defined: the same as long as nobody has altered it. */
  state(session: CommandSession): Promise<readonly TextRow[]>;
  /** Whether a table of it is gone that the snapshot of the session still has. */
  hasLostTables(session: CommandSession): Promise<boolean>;
}
