import type { Tables } from '../engine/model/change.js';

declare const TABLES: unique symbol;

/** Names a pipeline and carries the types of its tables. Made by {@link definePipeline}. */
export interface PipelineHandle<T = Tables> {
  readonly name: string;
  /** Exists for the compiler only. */
  readonly [TABLES]?: T;
}

/** How a pipeline is named wherever the library asks for one. */
export type PipelineName = string | PipelineHandle<unknown>;

/** Name of the pipeline that the short form of the options configures. */
export const DEFAULT_PIPELINE = 'default';

/**
 * Names a pipeline once, together with the types of its tables, so that sinks, injections and options refer to a value
 * instead of repeating a string.
 *
 * @typeParam T - tables of the pipeline: `'schema.table'` to the type of its row
 * @example
 * ```ts
 * interface Shop { 'public.orders': { id: string; total: string } }
 * export const orders = definePipeline<Shop>('orders');
 * ```
 */
export function definePipeline<T = Tables>(name: string): PipelineHandle<T> {
  return Object.freeze({ name });
}

/** The name that a string or handle stands for; {@link DEFAULT_PIPELINE} when there is none. */
export function pipelineName(
  pipeline: PipelineName = DEFAULT_PIPELINE,
): string {
  return typeof pipeline === 'string' ? pipeline : pipeline.name;
}
