/** What is said of a reason for which a pipeline halts. */
interface HaltText {
  /** What has happened. */
  readonly cause: string;
  /** What to do, in a sentence or a few. */
  readonly remedy: string;
}

/** The slot before the rows: what is written between a load and the creation of the slot would never come. */
const LOAD_ANEW =
  'remove the checkpoint, let the pipeline create a new slot, and only then load the sink anew from the source';

/** Every reason for which a pipeline halts. `docs/halts.md` is made of it. */
export const HALTS = {
  'config/go_forward_required': {
    cause:
      'The sink has no checkpoint and the slot is new, so the rows that exist already would never reach it, and nobody has agreed to that.',
    remedy:
      'Set the option snapshot to copy them, or goForwardOnly: true to begin with the changes from now on, or restore the checkpoint of this slot.',
  },
  'config/server_too_old': {
    cause: 'The server is older than PostgreSQL 15.',
    remedy: 'Use PostgreSQL 15 or later.',
  },
  'config/failover_unsupported': {
    cause:
      'The option failover is on, and the server is older than PostgreSQL 17.',
    remedy: 'Remove the option failover, or use PostgreSQL 17 or later.',
  },
  'session_identity/other_server': {
    cause:
      'The connection leads to another cluster than the one whose positions the checkpoint holds.',
    remedy:
      'Point the connection at the server that the checkpoint belongs to, or remove the checkpoint row to start anew.',
  },
  'session_identity/rejected': {
    cause:
      'The @OnSessionIdentity() method of the sink did not accept the server, or the server did not say who it is.',
    remedy:
      'Point the connection at the server that the sink is bound to, or change what its @OnSessionIdentity() method accepts.',
  },
  'publication/missing': {
    cause:
      'A publication of the option publication does not exist, now or at the point of the WAL that is being read. The server would stream the rest without a word.',
    remedy: `Create the publication, or correct the option publication. One that was dropped while its changes were pending leaves a gap even when it is created again: then drop the slot, ${LOAD_ANEW}.`,
  },
  'publication/column_lists': {
    cause:
      'Two publications of the option publication publish different columns of one table, and the server refuses to decode its changes.',
    remedy:
      'Give the table the same column list in all of them, or leave all but one out of the option publication. Changes that were written while the lists differed can only be read the second way.',
  },
  'preflight/self_feeding': {
    cause:
      'What is captured includes the table of the checkpoint, so that every checkpoint would be a change, which would be a checkpoint, for ever.',
    remedy:
      'Leave the checkpoint table out of the publication, the option tables or the replication sets: publish the tables by name instead.',
  },
  'preflight/wal_level': {
    cause:
      'The WAL of the server does not hold what logical replication needs.',
    remedy:
      "Run: ALTER SYSTEM SET wal_level = 'logical'; then restart the server.",
  },
  'preflight/replication_role': {
    cause: 'The role of the connection may not replicate.',
    remedy:
      'Run, as a superuser: ALTER ROLE … REPLICATION; for the role of the connection. Managed services have a role of their own for it, such as rds_replication.',
  },
  'preflight/pooler': {
    cause:
      'Between the pipeline and the server stands a connection pooler that refuses replication, drops the request for it, or gives one server process to several sessions.',
    remedy:
      'Connect to PostgreSQL itself: a connection pooler cannot carry a replication session.',
  },
  'preflight/synchronous_standby': {
    cause:
      'synchronous_standby_names of the source matches the pipeline, and the sink writes to the same cluster: its commit would wait until the pipeline has confirmed it, and the pipeline for the commit.',
    remedy:
      'Leave application names that begin with nestjs-replicant out of synchronous_standby_names: the commit of the sink would wait for itself.',
  },
  'preflight/select_privilege': {
    cause:
      'The role of the connection may not read a table that the snapshot copies. The stream needs no such privilege, a copy does.',
    remedy:
      'Run the GRANT statements of the detail, as the owner of the tables; then start the pipeline again.',
  },
  'preflight/row_security': {
    cause:
      'A table that the snapshot copies has row security that applies to the role of the connection: the stream carries every row, and the copy would lack some.',
    remedy:
      'Run the statement of the detail, as a superuser; then start the pipeline again.',
  },
  'slot/not_usable': {
    cause:
      'The slot is not a durable logical slot of this database with this output plugin and without two-phase decoding.',
    remedy:
      'Choose another slotName, or drop the slot with pg_drop_replication_slot() if nothing else needs it.',
  },
  slot_synced_unpromoted: {
    cause:
      'The slot is a copy that a standby keeps of a slot on its primary, and it cannot be used before the standby is promoted.',
    remedy:
      'Promote the standby, connect to the primary, or set leaderElection: true to wait for the promotion.',
  },
  'slot_origin/slot_origin_unavailable': {
    cause: 'The server does not tell from which position on the slot streams.',
    remedy:
      'Drop the slot, and reconcile the log with the source before the next start.',
  },
  'slot_origin/slot_origin_rejected': {
    cause:
      'The @OnSlotOrigin() method of the sink did not accept the position from which the slot streams.',
    remedy:
      'Reconcile the log with the source: what its @OnSlotOrigin() method misses may be lost.',
  },
  'slot_invalidated/wal_lost': {
    cause:
      'The server has removed WAL that the slot needs, because it fell further behind than max_slot_wal_keep_size allows.',
    remedy: `Drop the slot, ${LOAD_ANEW}; raise max_slot_wal_keep_size.`,
  },
  'slot_invalidated/conflict': {
    cause: 'The slot is on a standby and conflicted with its recovery.',
    remedy: `Drop the slot, ${LOAD_ANEW}.`,
  },
  'slot_invalidated/rows_removed': {
    cause:
      'The primary has removed catalog rows that the slot on its standby needs.',
    remedy: `Drop the slot, ${LOAD_ANEW}; set hot_standby_feedback on the standby.`,
  },
  'slot_invalidated/wal_level_insufficient': {
    cause: 'wal_level was below logical for a while.',
    remedy: `Set wal_level = logical, drop the slot, ${LOAD_ANEW}.`,
  },
  'slot_invalidated/invalidated': {
    cause:
      'The server has invalidated the slot for another reason, such as idle_replication_slot_timeout.',
    remedy: `Drop the slot, ${LOAD_ANEW}.`,
  },
  'data_gap/slot_missing_with_checkpoint': {
    cause:
      'The sink has a checkpoint, so the slot has existed, and it is gone.',
    remedy: `The changes since the checkpoint are lost with the slot: ${LOAD_ANEW}.`,
  },
  'data_gap/slot_missing_with_progress': {
    cause:
      'The sink has the progress of a snapshot, so the slot has existed, and it is gone.',
    remedy: `The changes since the snapshot began are lost with the slot: remove the progress, ${LOAD_ANEW}; or let the snapshot copy everything anew.`,
  },
  'data_gap/slot_moved': {
    cause:
      'The slot stands after the last position that was stored with the checkpoint: somebody advanced it, or dropped and created it again.',
    remedy: `Somebody advanced or re-created the slot, changes in between are lost: drop the slot, ${LOAD_ANEW}.`,
  },
  'data_gap/checkpoint_ahead_of_server': {
    cause:
      'The WAL of the server ends before the checkpoint: it was restored from a backup, or is a standby that was promoted before it had everything.',
    remedy: `The server was restored to a time before the checkpoint: drop the slot, ${LOAD_ANEW}.`,
  },
  'data_gap/timeline_diverged': {
    cause:
      'The history of the server has left the timeline of the checkpoint before the position of the checkpoint: what the sink has applied since then does not exist on this server.',
    remedy: `The server left the history of the checkpoint before its position, as a standby does that was promoted too early: drop the slot, ${LOAD_ANEW}.`,
  },
  'schema_change/destructive': {
    cause:
      'A table has lost a column or changed a type, its replica identity or its name, and the sink has no @OnSchemaChange() method to accept that.',
    remedy:
      'Adapt the sink, and accept the change in a method with @OnSchemaChange(); then start the pipeline again.',
  },
  'schema_change/rejected': {
    cause:
      'The @OnSchemaChange() method of the sink did not accept a change of a table.',
    remedy:
      'See halt.sinkError(); adapt the sink so that its @OnSchemaChange() method resolves, then start the pipeline again.',
  },
  'checkpoint/invalid': {
    cause:
      'The @Checkpoint() method of the sink returned neither a position nor null.',
    remedy:
      'Return a commit position as bigint, or null when nothing was applied yet, from the @Checkpoint() method.',
  },
  'checkpoint/progress_column': {
    cause:
      'The table of the checkpoint was made by an earlier version and has no column for the progress of a snapshot, and its role may not add one.',
    remedy:
      'Run the statement of the detail, as the owner of that table; then start the pipeline again.',
  },
  'checkpoint_store/schema': {
    cause:
      'The table of the option checkpointStore has not the columns of a checkpoint.',
    remedy:
      'Name another table in checkpointStore.table, or mend or remove the one that is there; the pipeline creates what is missing.',
  },
  'checkpoint_store/refused': {
    cause:
      'The database of the option checkpointStore refused a statement for a reason that does not pass by itself, such as a missing privilege.',
    remedy:
      'Mend what that database reports with this SQLSTATE; then start the pipeline again.',
  },
  'checkpoint_store/unavailable': {
    cause:
      'The checkpoint could not be read from the database of the option checkpointStore, more often than checkpointStore.maxRetries allows.',
    remedy:
      'Make the database of checkpointStore.connection available; then start the pipeline again.',
  },
  checkpoint_store_failed: {
    cause:
      'The sink has done its work, and the checkpoint could not be written after it, more often than checkpointStore.maxRetries allows.',
    remedy:
      'Make the database of checkpointStore.connection available and writable; then start the pipeline again. What the sink did last comes again.',
  },
  snapshot_incomplete: {
    cause:
      'The slot is there and the sink has no checkpoint: the process that copied the rows was killed before it was done.',
    remedy:
      'Stop the pipeline, call pipeline.dropSlot() and start it again: it makes a new slot and copies everything anew. With the mode incremental a snapshot goes on where it was.',
  },
  snapshot_failed: {
    cause:
      'A method with @OnSnapshot() or @OnSnapshotComplete() rejected, for whatever reason. Nothing of its rows counts as copied.',
    remedy:
      'See halt.sinkError(); mend the sink or its database, then start the pipeline again: it copies everything anew in the mode initial, and goes on behind the last chunk in the mode incremental.',
  },
  snapshot_progress_invalid: {
    cause:
      'What is stored as the progress of the snapshot was not written by this library, or is damaged.',
    remedy:
      'Restore the progress that was stored last, or remove progress and checkpoint and drop the slot to copy everything anew.',
  },
  snapshot_table_contended: {
    cause:
      'A table without a primary key was written to each time that it was copied. Such a table can only be copied whole, while nobody writes to it.',
    remedy:
      'Give the table a primary key, or start the pipeline again at a time when nobody writes to it, or use the mode initial.',
  },
  'command_error/permanent': {
    cause:
      'The server refused the connection or a command for a reason that does not pass by itself.',
    remedy:
      'Mend what the server reports with this SQLSTATE; then start the pipeline again.',
  },
  'command_error/exhausted': {
    cause:
      'The server refused a step before streaming more often than maxCommandRetries allows, or could not decode its WAL at the same place as often; or, without leaderElection, another process has kept the slot for as long.',
    remedy:
      'Mend what the server reports, or stop the process that uses the slot; then start the pipeline again.',
  },
  'decoder/plugin_missing': {
    cause: 'The server does not have the output plugin of the option decoder.',
    remedy:
      'Install the plugin on the server (Debian packages: postgresql-NN-wal2json, postgresql-NN-pglogical), or use another decoder: pgoutput is part of PostgreSQL.',
  },
  'decoder/plugin_not_allowed': {
    cause:
      'The server does not allow the output plugin of the option decoder: its setting output_plugin_libraries does not list it.',
    remedy:
      'Run the statement of the detail, as a superuser, which adds the plugin to what is listed already; then SELECT pg_reload_conf(). Each name is a word of its own: the whole list between quotes would be one name, and every plugin be refused.',
  },
  'decoder/option_unsupported': {
    cause:
      'The output plugin on the server does not know an option that this decoder needs: it is too old.',
    remedy: 'Install wal2json 2.6 or later, or pglogical 2.4 or later.',
  },
  'decoder/protocol_unsupported': {
    cause:
      'The output plugin on the server does not speak version 1 of its native protocol.',
    remedy: 'Install pglogical 2.4 or later.',
  },
  'decoder/encoding_unsupported': {
    cause:
      'The encoding of the database is not UTF8, and the output plugin of the option decoder does not convert what it sends.',
    remedy: 'Use the decoder pgoutput: the server converts what it sends.',
  },
  'decoder/table_missing': {
    cause:
      'A table of the option tables does not exist, or is none whose rows wal2json sends.',
    remedy:
      'Create the table, or correct the option tables: names stand there as they are, without quotes, and partitions in place of what they are part of.',
  },
  'decoder/table_keyless': {
    cause:
      'A table of the option tables has neither a usable replica identity nor REPLICA IDENTITY FULL, and wal2json leaves out its updates and deletes without an error.',
    remedy: `Add a primary key, or run: ALTER TABLE … REPLICA IDENTITY FULL; or set allowKeylessTables: true where inserts alone are wanted. An update or delete that was left out already comes no more, also when the table has an identity again: then drop the slot, ${LOAD_ANEW}.`,
  },
  'decoder/replication_set_missing': {
    cause:
      'A replication set of the option replicationSets does not exist on the server, or pglogical has no node there.',
    remedy: `Create the extension (shared_preload_libraries needs pglogical), the node and the set (pglogical.create_node, pglogical.create_replication_set), or correct the option replicationSets. The server cannot decode what was written while a set was gone, even when it is created again: then drop the slot, ${LOAD_ANEW}.`,
  },
  'decoder/lsn_missing': {
    cause: 'A message of the output plugin lacks its position in the WAL.',
    remedy:
      'Nothing was skipped. Install wal2json 2.6 or later; otherwise report this.',
  },
  decode_failure: {
    cause: 'A message of the stream is malformed.',
    remedy:
      'Report this with the server version: the stream holds a message that cannot be read.',
  },
  unsupported_message: {
    cause: 'The stream holds a message that was not asked for.',
    remedy:
      'Report this with the server version: the stream holds a message of an unknown kind.',
  },
  insert_incomplete: {
    cause: 'The server sent an insert without the value of a column.',
    remedy: `A row filter turned an update into an insert, and the server left out a large column: set REPLICA IDENTITY FULL on that table, drop the slot, ${LOAD_ANEW}.`,
  },
  protocol_violation: {
    cause:
      'Messages of the stream contradict each other, such as two transactions with the same position.',
    remedy:
      'Report this with the server version: the stream holds messages in an impossible order.',
  },
  transaction_too_large: {
    cause:
      'The logical messages of one transaction hold more than maxInflightBytes; or, with the option streaming and without streaming.spill, transactions that are still running do.',
    remedy:
      'Set streaming.spill, so that running transactions wait on disk for their commit, or raise maxInflightBytes. Messages wait in memory: raise maxInflightBytes above the size of those of the transaction.',
  },
  too_many_streams: {
    cause:
      'The server sends more transactions that are still running than streaming.maxConcurrentTxns allows.',
    remedy:
      'Raise streaming.maxConcurrentTxns above the number of large transactions that run at a time, or raise logical_decoding_work_mem of the server, so that fewer are sent before their commit.',
  },
  spill_exhausted: {
    cause:
      'Transactions that are still running need more room on disk than streaming.spill.maxSpillBytes allows.',
    remedy:
      'Raise streaming.spill.maxSpillBytes, as far as the disk has room, or leave out the option streaming: the server then keeps transactions until they commit.',
  },
  spill_io_failed: {
    cause:
      'A file below streaming.spill.dir could not be written, read or removed, such as on a disk that is full (ENOSPC), or its content was not what had been written.',
    remedy:
      'Mend what the detail names, such as make room on the disk of streaming.spill.dir or let the user of the process write there; then start the pipeline again: the server sends everything again.',
  },
  sink_failed: {
    cause:
      'A handler of the sink rejected, for whatever reason. Nothing of its transaction is confirmed.',
    remedy:
      'See halt.sinkError(); mend the sink or its database, then start the pipeline again. A transaction that can never be applied is passed over, and lost to the sink, by pipeline.skipTransaction(halt.lsn). Without a position in the halt a whole batch failed: with the option sinkRetry its transactions are delivered one by one, and the halt names the one.',
  },
  'sink_failed/no_promise': {
    cause:
      'A handler of the sink returned no promise, so nothing tells when its work is durable.',
    remedy:
      'Return the promise of the work from the handler (declare it async), so that nothing is confirmed before it is durable.',
  },
  'sink_failed/partial_transaction': {
    cause:
      'A handler of the sink resolved although the connection was lost before it had read the transaction to its end.',
    remedy:
      'The handler caught the error that reading changes threw, and resolved, so that a part of the transaction may be committed. A CheckpointTable was set back and the next start brings the whole transaction again: before that, let the error leave the handler, and remove the part unless the sink writes by key. A checkpoint of your own has to be set below the position of this halt first.',
  },
  'sink_failed/around_skipped': {
    cause: 'The option around resolved or failed without having called next().',
    remedy: 'Call next() exactly once in the option around.',
  },
} as const satisfies Record<string, HaltText>;

/** Names a reason for which a pipeline halts. */
export type HaltCode = keyof typeof HALTS;
