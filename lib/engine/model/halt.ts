import { formatLsn, type Lsn } from './lsn.js';

/** Every reason for which a pipeline halts, with the sentence that says what to do. */
export const HALTS = {
  'config/go_forward_required':
    'Set goForwardOnly: true to begin with the changes from now on, or restore the checkpoint of this slot.',
  'config/server_too_old': 'Use PostgreSQL 15 or later.',
  'config/failover_unsupported':
    'Remove the option failover, or use PostgreSQL 17 or later.',
  'session_identity/other_server':
    'Point the connection at the server that the checkpoint belongs to, or remove the checkpoint row to start anew.',
  'session_identity/rejected':
    'Point the connection at the server that the sink is bound to, or change what its @OnSessionIdentity() method accepts.',
  'publication/missing':
    'Create the publication, or correct the option publication. One that was dropped while its changes were pending leaves a gap even when it is created again: then drop the slot, load the sink anew from the source and remove its checkpoint.',
  'publication/column_lists':
    'Give the table the same column list in all of them: alter publication … set table … (…), or leave it out of all but one.',
  'preflight/self_feeding':
    'Leave the checkpoint table out of the publication: publish the tables by name instead.',
  'preflight/wal_level':
    "Run: ALTER SYSTEM SET wal_level = 'logical'; then restart the server.",
  'preflight/replication_role':
    'Run, as a superuser: ALTER ROLE … REPLICATION; for the role of the connection. Managed services have a role of their own for it, such as rds_replication.',
  'preflight/pooler':
    'Connect to PostgreSQL itself: a connection pooler cannot carry a replication session.',
  'preflight/synchronous_standby':
    'Leave application names that begin with nestjs-replicant out of synchronous_standby_names: the commit of the sink would wait for itself.',
  'slot/not_usable':
    'Choose another slotName, or drop the slot with pg_drop_replication_slot() if nothing else needs it.',
  slot_synced_unpromoted:
    'Promote the standby, connect to the primary, or set leaderElection: true to wait for the promotion.',
  'slot_origin/slot_origin_unavailable':
    'Drop the slot, and reconcile the log with the source before the next start.',
  'slot_origin/slot_origin_rejected':
    'Reconcile the log with the source: what its @OnSlotOrigin() method misses may be lost.',
  'slot_invalidated/wal_lost':
    'Drop the slot, load the sink anew from the source and remove its checkpoint; raise max_slot_wal_keep_size.',
  'slot_invalidated/conflict':
    'Drop the slot, load the sink anew from the source and remove its checkpoint.',
  'slot_invalidated/rows_removed':
    'Drop the slot, load the sink anew from the source and remove its checkpoint; set hot_standby_feedback on the standby.',
  'slot_invalidated/wal_level_insufficient':
    'Set wal_level = logical, drop the slot, load the sink anew from the source and remove its checkpoint.',
  'slot_invalidated/invalidated':
    'Drop the slot, load the sink anew from the source and remove its checkpoint.',
  'data_gap/slot_missing_with_checkpoint':
    'The changes since the checkpoint are lost with the slot: load the sink anew from the source and remove its checkpoint.',
  'data_gap/slot_moved':
    'Somebody advanced or re-created the slot, changes in between are lost: load the sink anew from the source and remove its checkpoint.',
  'data_gap/checkpoint_ahead_of_server':
    'The server was restored to a time before the checkpoint: load the sink anew from the source and remove its checkpoint.',
  'data_gap/timeline_diverged':
    'The server left the history of the checkpoint before its position, as a standby does that was promoted too early: load the sink anew from the source and remove its checkpoint.',
  'schema_change/destructive':
    'Adapt the sink, and accept the change in a method with @OnSchemaChange(); then start the pipeline again.',
  'schema_change/rejected':
    'See halt.sinkError(); adapt the sink so that its @OnSchemaChange() method resolves, then start the pipeline again.',
  'checkpoint/invalid':
    'Return a commit position as bigint, or null when nothing was applied yet, from the @Checkpoint() method.',
  'command_error/permanent':
    'Mend what the server reports with this SQLSTATE; then start the pipeline again.',
  'command_error/exhausted':
    'Mend what the server reports, or stop the process that uses the slot; then start the pipeline again.',
  decode_failure:
    'Report this with the server version: the stream holds a message that cannot be read.',
  unsupported_message:
    'Report this with the server version: the stream holds a message of an unknown kind.',
  insert_incomplete:
    'A row filter turned an update into an insert, and the server left out a large column: set REPLICA IDENTITY FULL on that table, then load the sink anew from the source and remove its checkpoint.',
  protocol_violation:
    'Report this with the server version: the stream holds messages in an impossible order.',
  transaction_too_large:
    'Raise maxInflightBytes above the size of the messages of the transaction.',
  sink_failed:
    'See halt.sinkError(); mend the sink or its database, then start the pipeline again.',
  'sink_failed/no_promise':
    'Return the promise of the work from the handler (declare it async), so that nothing is confirmed before it is durable.',
  'sink_failed/partial_transaction':
    'The handler caught the error that reading changes threw, and resolved, so that a part of the transaction may be committed. A CheckpointTable was set back and the next start brings the whole transaction again: before that, let the error leave the handler, and remove the part unless the sink writes by key. A checkpoint of your own has to be set below the position of this halt first.',
  'sink_failed/around_skipped':
    'Call next() exactly once in the option around.',
} as const satisfies Record<string, string>;

/** Names a reason for which a pipeline halts. */
export type HaltCode = keyof typeof HALTS;

/** Facts beside the code of a halt. */
export interface HaltFacts {
  /** What was found: names and positions, never a row value. */
  readonly detail: string;
  /** Commit position of the transaction at which the pipeline halted. */
  readonly lsn?: Lsn;
  /** The error of the user's own sink. */
  readonly sinkError?: unknown;
}

/** Why a pipeline stands still until somebody acts. Slot and checkpoint are as they were. */
export class Halt {
  readonly remedy: string;
  readonly detail: string;
  readonly lsn: Lsn | null;
  readonly at: Date;
  readonly #sinkError: unknown;

  constructor(
    readonly code: HaltCode,
    facts: HaltFacts,
  ) {
    this.remedy = HALTS[code];
    this.detail = facts.detail;
    this.lsn = facts.lsn ?? null;
    this.at = new Date();
    this.#sinkError = facts.sinkError;
  }

  /** Gives the position as text, because JSON has no bigint; and never the error of the sink. */
  toJSON() {
    const { code, remedy, detail, lsn, at } = this;
    return {
      code,
      remedy,
      detail,
      lsn: lsn === null ? null : formatLsn(lsn),
      at: at.toISOString(),
    };
  }

  /**
   * The error that the sink rejected with; `undefined` for every other halt. It is a method and not a property
   * because such errors carry row values, and printing a halt must never print them.
   */
  sinkError(): unknown {
    return this.#sinkError;
  }
}

/** Ends a connection and halts its pipeline; also what waiting for a halted pipeline rejects with. */
export class HaltError extends Error {
  override readonly name = 'HaltError';
  readonly #halt: Halt;

  constructor(code: HaltCode, facts: HaltFacts);
  constructor(halt: Halt);
  constructor(codeOrHalt: HaltCode | Halt, facts: HaltFacts = { detail: '' }) {
    const halt =
      codeOrHalt instanceof Halt ? codeOrHalt : new Halt(codeOrHalt, facts);
    super(`${halt.code}: ${halt.detail}. ${halt.remedy}`);
    this.#halt = halt;
  }

  /** Why the pipeline halted. */
  get halt(): Halt {
    return this.#halt;
  }
}
