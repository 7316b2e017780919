import type { Lsn } from './lsn.js';

/** What a checkpoint is asked for: the pipeline, and the server that it is connected to. */
export interface CheckpointContext {
  readonly pipeline: string;
  readonly slotName: string;
  readonly systemIdentifier: string;
  /** 0 on a standby, which may go on to another while it streams. */
  readonly timeline: number;
}

/** What a {@link CheckpointKeeper} has stored for one slot. */
export interface StoredCheckpoint {
  /** Commit position of the last transaction applied; `null` before the first. */
  readonly commitLsn: Lsn | null;
  /** Boundary below which nothing is left to come; `null` when none was stored. */
  readonly confirmedLsn: Lsn | null;
  readonly systemIdentifier: string;
  /** As {@link CheckpointContext.timeline} was at the last write. */
  readonly timeline: number;
  /**
   * The shapes of tables that {@link CheckpointKeeper.keepRelations} brought, as JSON; `null` when none were stored.
   * Absent from a keeper that does not store them.
   */
  readonly relations?: string | null;
  /**
   * What {@link CheckpointKeeper.storeProgress} stored last; `null` when nothing was. Absent from a keeper that does not store it.
   */
  readonly progress?: string | null;
}

/** Where a checkpoint table is, so that a publication that carries it can be refused. */
export interface CheckpointHome {
  /** `null` when the role may not call `pg_control_system()`: the table's server is then unknown, and may be the source. */
  readonly systemIdentifier: string | null;
  readonly database: string;
  /** OID of the table. */
  readonly relationOid: number;
  /** `schema.table`, each part quoted by the server where needed. */
  readonly quotedName: string;
}

/** A checkpoint that stores positions besides reading them. `CheckpointTable` is one. */
export interface CheckpointKeeper {
  /** Called on every connect, before {@link load}: the server whose positions follow. */
  identify(context: CheckpointContext): void;
  /** The stored row, or `null` when there is none. */
  load(): Promise<StoredCheckpoint | null>;
  /** Stores a boundary without a transaction. Never moves backwards. */
  confirm(lsn: Lsn): Promise<void>;
  /**
   * Takes an advance back: the transaction that commits at `commitLsn` was applied in part only and has to come again.
   * Does nothing when the checkpoint is elsewhere.
   */
  retract(commitLsn: Lsn): Promise<void>;
  /**
   * What every write from now on stores beside the position, in the same statement: the shapes of tables that changed, as a
   * JSON merge patch (RFC 7396) of one level for {@link StoredCheckpoint.relations}; `null` for nothing. A keeper without
   * it does not notice a schema change that is made while the pipeline is down.
   */
  keepRelations?(patch: string | null): void;
  /**
   * Called on a connect of a pipeline that keeps the progress of a snapshot here, after {@link load} and before anything is stored: makes room for it.
   */
  prepareProgress?(): Promise<void>;
  /**
   * Stores {@link SnapshotContext.progress} in place of what was stored before, unless another process has changed that since it was read.
   * A keeper without it cannot keep the progress of a snapshot.
   */
  storeProgress?(progress: string): Promise<void>;
  /** The progress that is stored, as far as this process knows: it was read, or written by the sink or by {@link storeProgress}. */
  readonly storedProgress?: string | null;
  /** Commit position that was last advanced to since {@link load}; `null` when none was. */
  readonly advancedTo: Lsn | null;
  home(): Promise<CheckpointHome>;
}

/** The checkpoint of a sink that keeps none: the library writes it, after the sink has done its work, so it is never taken back. */
export interface CheckpointStore extends Omit<CheckpointKeeper, 'retract'> {
  /**
   * Stores that everything through a transaction is done, and tries again as its options say.
   *
   * @param endLsn its end, a boundary
   * @throws {HaltError} `checkpoint_store_failed` and its kin
   * @throws {ConnectionFault} when another process has written the row since {@link load}: it has to be read anew
   */
  commit(commitLsn: Lsn, endLsn: Lsn): Promise<void>;
  /** Closes its connection; the next call opens one anew. Never rejects. */
  close(): Promise<void>;
}

/** A sink's own way to say what it applied last: the commit position, or `null` for nothing yet. */
export type CheckpointReader = (
  context: CheckpointContext,
) => Promise<Lsn | null>;

/** A sink's own way to say what {@link SnapshotContext.progress} it stored last; `null` for none yet. */
export type SnapshotProgressReader = (
  context: CheckpointContext,
) => Promise<string | null>;

/** Where a checkpoint comes from: a keeper that the sink advances, one that the library advances, or a method of the sink. */
export type SinkCheckpoint =
  | { readonly kind: 'keeper'; readonly keeper: CheckpointKeeper }
  | { readonly kind: 'store'; readonly keeper: CheckpointStore }
  | { readonly kind: 'reader'; readonly read: CheckpointReader };
