import type { Transaction } from '../engine/model/transaction.js';
import type { PipelineHandle } from '../pipelines/define-pipeline.js';
import { markMember } from '../sinks/sink.metadata.js';
import {
  handlerOf,
  type AnyTransaction,
  type HandlerDecorator,
} from './handler-decorator.js';

/**
 * Makes a method the handler of committed transactions. They arrive one after another in commit order.
 *
 * A promise that resolves promises that the work is durable, and the server may then forget the transaction; its value
 * is ignored. A promise that rejects halts the pipeline. A handler that returns no promise does not compile, and halts
 * with `sink_failed/no_promise` at run time: otherwise a forgotten `await` would confirm data that was never written.
 *
 * It is needed unless the option `batchDelivery` is given, which needs {@link OnBatch} instead, or {@link OnChange} takes its place; one of them
 * beside it is refused.
 *
 * A method of a subclass that overrides the decorated one is the handler in its place.
 *
 * @param pipeline - handle of the sink's pipeline; the method must then take a transaction of its tables
 */
export function OnTransaction(): HandlerDecorator<
  [transaction: AnyTransaction]
>;
export function OnTransaction<T>(
  pipeline: PipelineHandle<T>,
): HandlerDecorator<[transaction: Transaction<T>]>;
export function OnTransaction(
  pipeline?: PipelineHandle<unknown>,
): HandlerDecorator<never> {
  return (prototype, property) => {
    markMember('transaction', prototype, handlerOf(property, pipeline));
  };
}
