import { Injectable } from '@nestjs/common';
import {
  pipelineName,
  type PipelineName,
} from '../pipelines/define-pipeline.js';
import type { SinkKind } from '../engine/model/sink-kind.js';
import { markSink } from '../sinks/sink.metadata.js';

/** Settings of a sink class. */
export interface ReplicantSinkOptions {
  /**
   * `appendLog` for a sink that records everything and must never be confirmed past its own checkpoint: the slot is not moved while
   * nothing concerns it (so publish a heartbeat to release WAL), it starts without `goForwardOnly`, and it needs a method with
   * {@link OnSlotOrigin}.
   *
   * @default 'mirror'
   */
  readonly kind?: SinkKind;
}

/**
 * Makes a class the sink of a pipeline, and injectable. List it among the providers of one module; it must be a singleton. The options
 * of the pipeline say what else it needs:
 *
 * - by default one method with {@link OnTransaction} and one member with {@link Checkpoint}
 * - with `batchDelivery` one method with {@link OnBatch} and one member with {@link Checkpoint}
 * - with `checkpointStore` one method with {@link OnTransaction}, or some with {@link OnChange}; and no {@link Checkpoint}, because the
 *   library keeps it
 *
 * What is missing, and what belongs to another of these, is refused when the application starts, by a `SinkDefinitionError`.
 *
 * Exception filters, guards and interceptors never apply to a sink: they could turn a failed write into a confirmed one.
 *
 * @param pipeline - name or handle; the pipeline of the short form (`default`) when omitted
 */
export function ReplicantSink(options?: ReplicantSinkOptions): ClassDecorator;
export function ReplicantSink(
  pipeline: PipelineName,
  options?: ReplicantSinkOptions,
): ClassDecorator;
export function ReplicantSink(
  pipelineOrOptions?: PipelineName | ReplicantSinkOptions,
  options?: ReplicantSinkOptions,
): ClassDecorator {
  const alone = isOptions(pipelineOrOptions);
  const pipeline = alone ? undefined : pipelineOrOptions;
  const { kind = 'mirror' } = (alone ? pipelineOrOptions : options) ?? {};
  return (sinkClass) => {
    Injectable()(sinkClass);
    markSink(sinkClass, pipelineName(pipeline), kind);
  };
}

function isOptions(
  value: PipelineName | ReplicantSinkOptions | undefined,
): value is ReplicantSinkOptions {
  return typeof value === 'object' && !('name' in value);
}
