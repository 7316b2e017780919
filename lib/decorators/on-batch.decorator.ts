import type { Transaction } from '../engine/model/transaction.js';
import type { PipelineHandle } from '../pipelines/define-pipeline.js';
import { markMember } from '../sinks/sink.metadata.js';
import {
  handlerOf,
  type AnyTransaction,
  type HandlerDecorator,
} from './handler-decorator.js';

/**
 * Makes a method the handler of committed transactions, several at a time: `(transactions) => Promise<void>`. There is at least one, and they are in
 * commit order. The option `batchDelivery` says how many, and needs this method in place of {@link OnTransaction}; without the
 * option it is refused.
 *
 * A promise that resolves promises that all of them are durable, together with the checkpoint: write them and
 * `CheckpointTable.advance(query, transactions)`, which says which are new, in one database transaction. A promise that rejects halts
 * the pipeline, and nothing of the batch is confirmed. A method that returns no promise does not compile, and halts with `sink_failed/no_promise` at run time.
 *
 * A transaction that is too large to be held comes alone, and is read while it arrives.
 *
 * @param pipeline - handle of the sink's pipeline; the method must then take transactions of its tables
 */
export function OnBatch(): HandlerDecorator<
  [transactions: readonly AnyTransaction[]]
>;
export function OnBatch<T>(
  pipeline: PipelineHandle<T>,
): HandlerDecorator<[transactions: readonly Transaction<T>[]]>;
export function OnBatch(
  pipeline?: PipelineHandle<unknown>,
): HandlerDecorator<never> {
  return (prototype, property) => {
    markMember('batch', prototype, handlerOf(property, pipeline));
  };
}
