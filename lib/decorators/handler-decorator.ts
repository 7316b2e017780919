import type { Transaction } from '../engine/model/transaction.js';
import {
  pipelineName,
  type PipelineHandle,
} from '../pipelines/define-pipeline.js';
import type { SinkMember } from '../sinks/sink.metadata.js';

/** Stands on a method with these parameters that returns a promise. */
export type HandlerDecorator<Parameters extends readonly unknown[]> = <
  F extends (...parameters: Parameters) => Promise<unknown>,
>(
  prototype: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
) => void;

/** A transaction without changes: it can be passed to a handler for a transaction of any tables. */
export type AnyTransaction = {
  [K in keyof Transaction]: K extends 'changes'
    ? readonly never[]
    : Transaction[K];
};

/** A method, and the pipeline whose types its decorator was given. */
export function handlerOf(
  property: string | symbol,
  pipeline: PipelineHandle<unknown> | undefined,
): SinkMember {
  return pipeline === undefined
    ? { property }
    : { property, pipeline: pipelineName(pipeline) };
}
