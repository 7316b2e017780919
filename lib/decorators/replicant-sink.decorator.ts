import { Injectable } from '@nestjs/common';
import {
  pipelineName,
  type PipelineName,
} from '../pipelines/define-pipeline.js';
import { markSink } from '../sinks/sink.metadata.js';

/**
 * Makes a class the sink of a pipeline, and injectable. List it among the providers of one module. It needs one method
 * with {@link OnTransaction} and one member with {@link Checkpoint}; it must be a singleton.
 *
 * Exception filters, guards and interceptors never apply to a sink: they could turn a failed write into a confirmed one.
 *
 * @param pipeline - name or handle; the pipeline of the short form (`default`) when omitted
 */
export function ReplicantSink(pipeline?: PipelineName): ClassDecorator {
  return (sinkClass) => {
    Injectable()(sinkClass);
    markSink(sinkClass, pipelineName(pipeline));
  };
}
