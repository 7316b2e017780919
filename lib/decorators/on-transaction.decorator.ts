import type { Transaction } from '../engine/model/transaction.js';
import {
  pipelineName,
  type PipelineHandle,
} from '../pipelines/define-pipeline.js';
import { markTransactionHandler } from '../sinks/sink.metadata.js';

/** A transaction without changes: it can be passed to a handler for a transaction of any tables. */
type AnyTransaction = {
  [K in keyof Transaction]: K extends 'changes'
    ? readonly never[]
    : Transaction[K];
};

/** Stands on a method that takes such a transaction and returns a promise. */
type TransactionHandlerDecorator<Taken> = <
  F extends (transaction: Taken) => Promise<unknown>,
>(
  prototype: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
) => void;

/**
 * Makes a method the handler of committed transactions. They arrive one after another in commit order.
 *
 * A promise that resolves promises that the work is durable, and the server may then forget the transaction; its value
 * is ignored. A promise that rejects halts the pipeline. A handler that returns no promise does not compile, and halts
 * with `sink_failed/no_promise` at run time: otherwise a forgotten `await` would confirm data that was never written.
 *
 * A method of a subclass that overrides the decorated one is the handler in its place.
 *
 * @param pipeline - handle of the sink's pipeline; the method must then take a transaction of its tables
 */
export function OnTransaction(): TransactionHandlerDecorator<AnyTransaction>;
export function OnTransaction<T>(
  pipeline: PipelineHandle<T>,
): TransactionHandlerDecorator<Transaction<T>>;
export function OnTransaction(
  pipeline?: PipelineHandle<unknown>,
): TransactionHandlerDecorator<never> {
  return (prototype, property) => {
    markTransactionHandler(
      prototype,
      pipeline === undefined
        ? { property }
        : { property, pipeline: pipelineName(pipeline) },
    );
  };
}
