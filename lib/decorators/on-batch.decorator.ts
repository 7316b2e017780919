import type { Transaction } from '../engine/model/transaction.js';
import type { PipelineHandle } from '../pipelines/define-pipeline.js';
import { markMember } from '../sinks/sink.metadata.js';
import {
  handlerOf,
  type AnyTransaction,
  type HandlerDecorator,
} from './handler-decorator.js';

/**
 * Makes a method the handler of several committed transactions at a time: `(transactions) => Promise<void>`, at least one, in commit
 * order. The option `batchDelivery` says how many, and needs it; it replaces {@link OnTransaction} there, and is refused elsewhere.
 *
 * The method applies all of them **and** moves the checkpoint to the last one in one database transaction: a promise that resolves
 * promises that all are durable. One that rejects halts the pipeline, and nothing of the batch is confirmed; without a promise it does not
 * compile, and halts with `sink_failed/no_promise` at run time.
 *
 * A transaction that is read while it arrives, because it is too large to be held, comes alone.
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
