import type {
  AnySnapshotRow,
  SnapshotContext,
  SnapshotRow,
} from '../engine/model/snapshot.js';
import type { PipelineHandle } from '../pipelines/define-pipeline.js';
import { markMember } from '../sinks/sink.metadata.js';
import { handlerOf, type HandlerDecorator } from './handler-decorator.js';

/** A row without what depends on its table: it can be passed to a handler for rows of any tables. */
type RowOfAnyTable = {
  readonly [P in keyof AnySnapshotRow]: P extends
    'relation' | 'record' | 'unchanged'
    ? never
    : AnySnapshotRow[P];
};

/**
 * Makes a method the handler of rows that exist already: `(rows, context) => Promise<void>`. The option `snapshot` needs it, and it needs the
 * option. All rows of a call are of one table, `context.relation`; there may be none. Calls for one table come one after another, and none
 * while a transaction is handled. In the mode `initial` those for several tables may run at the same time, up to `parallelTables`.
 *
 * The method writes rows by the replica identity of their table: one that is there already is replaced, but for the columns in
 * `unchanged`. With `context.firstForTable` it first removes what it has of the table. In the mode `incremental` it stores `context.progress` in the same database
 * transaction; `CheckpointTable.keepProgress()` does that, and nothing in the mode `initial`.
 *
 * A promise that resolves promises that the rows are durable. One that rejects halts the pipeline with `snapshot_failed`, after the attempts
 * that `sinkRetry` allows. A method that returns no promise does not compile, and halts with `sink_failed/no_promise` at run time.
 *
 * At least once: rows may come again, as they were or as they have become, and so does a call with `firstForTable`.
 *
 * @param pipeline - handle of the sink's pipeline; the method must then take rows of its tables
 * @example
 * ```ts
 * @OnSnapshot(shop)
 * async copy(rows: readonly SnapshotRow<Shop>[], context: SnapshotContext): Promise<void> {
 *   await this.db.transaction(async (em) => {
 *     await this.checkpoints.keepProgress((sql, values) => em.query(sql, values), context);
 *     if (context.firstForTable) await em.query('DELETE FROM orders');
 *     for (const { record } of rows) await em.upsert(Order, record, ['id']);
 *   });
 * }
 * ```
 */
export function OnSnapshot(): HandlerDecorator<
  [rows: readonly RowOfAnyTable[], context: SnapshotContext]
>;
export function OnSnapshot<T>(
  pipeline: PipelineHandle<T>,
): HandlerDecorator<
  [rows: readonly SnapshotRow<T>[], context: SnapshotContext]
>;
export function OnSnapshot(
  pipeline?: PipelineHandle<unknown>,
): HandlerDecorator<never> {
  return (prototype, property) => {
    markMember('snapshot', prototype, handlerOf(property, pipeline));
  };
}
