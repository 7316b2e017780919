import type {
  Delete,
  Insert,
  Row,
  Truncate,
  Update,
} from '../engine/model/change.js';
import type { PipelineHandle } from '../pipelines/define-pipeline.js';
import type { ChangeContext } from '../sinks/change-handlers.js';
import type { ChangeOp } from '../sinks/change-settings.js';
import { markMember } from '../sinks/sink.metadata.js';
import { handlerOf, type HandlerDecorator } from './handler-decorator.js';

/** Settings of a method with {@link OnChange}. */
export interface OnChangeOptions<Op extends ChangeOp = ChangeOp> {
  /**
   * What the method takes of the table.
   *
   * @default ['insert', 'update', 'delete', 'truncate']
   */
  readonly on?: readonly Op[];
}

/** The changes of one table by these operations. */
type ChangeBy<Op extends ChangeOp, K extends string, R = Row> = Extract<
  Insert<K, R> | Update<K, R> | Delete<K, R> | Truncate<K>,
  { readonly op: Op }
>;

/** A change without values: it can be passed to a handler for a row of any type. */
type WithoutValues<C> = C extends unknown
  ? {
      readonly [P in keyof C]: P extends 'record' | 'unchanged' | 'old'
        ? never
        : C[P];
    }
  : never;

/**
 * Makes a method a handler of the changes of one table: `(change, context) => Promise<void>`. It is for side effects, on a sink whose
 * checkpoint the library keeps (option `checkpointStore`), and refused elsewhere and beside {@link OnTransaction}.
 *
 * Without `on` it takes all four operations, TRUNCATE too. The decorator may be repeated for further tables, and several methods may take
 * the same one. Each change is given, in the order of the transaction, to the methods that take it, in the order of the class; each
 * promise is awaited before the next call. What no method takes is passed over. A table that no publication carries, or whose name is
 * misspelt, is told by a warning at the start. Messages inside the transaction go to methods with {@link OnMessage}, between the changes.
 *
 * The transaction is durable when the last promise has resolved. When one rejects the pipeline halts and confirms nothing. Then, with
 * `sinkRetry`, and after a crash the **whole** transaction comes again, with the changes that were handled already:
 * `context.transaction.commitLsn` and `change.ordinal` together tell a change from all others, and stay the same. A method that returns no
 * promise does not compile, and halts with `sink_failed/no_promise` at run time.
 *
 * @param table - as `change.relation` has it: `schema.table`, without quotes
 * @param pipeline - handle of the sink's pipeline; the table is then one of its tables, and the method must take its changes
 * @example
 * ```ts
 * @OnChange(orders, 'public.orders', { on: ['insert'] })
 * async confirm({ record }: Insert<'public.orders', Order>): Promise<void> {
 *   await this.mailer.send(record.customer);
 * }
 * ```
 */
export function OnChange<K extends string, Op extends ChangeOp = ChangeOp>(
  table: K,
  options?: OnChangeOptions<Op>,
): HandlerDecorator<
  [change: WithoutValues<ChangeBy<Op, K>>, context: ChangeContext]
>;
export function OnChange<
  T,
  K extends keyof T & string,
  Op extends ChangeOp = ChangeOp,
>(
  pipeline: PipelineHandle<T>,
  table: K,
  options?: OnChangeOptions<Op>,
): HandlerDecorator<[change: ChangeBy<Op, K, T[K]>, context: ChangeContext]>;
export function OnChange(
  pipelineOrTable: PipelineHandle<unknown> | string,
  tableOrOptions?: string | OnChangeOptions,
  optionsOfTable?: OnChangeOptions,
): HandlerDecorator<never> {
  const [pipeline, relation, options] =
    typeof pipelineOrTable === 'string'
      ? [undefined, pipelineOrTable, tableOrOptions]
      : [pipelineOrTable, tableOrOptions, optionsOfTable];
  const settings = Object.assign({ relation }, options);
  return (prototype, property) => {
    markMember('change', prototype, {
      ...handlerOf(property, pipeline),
      settings,
    });
  };
}
