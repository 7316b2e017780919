import type { CheckpointReader } from '../engine/model/checkpoint.js';
import { markMember } from '../sinks/sink.metadata.js';

/**
 * Says where a sink keeps its position. It stands on one of
 *
 * - a property that holds a `CheckpointTable`; the library binds it to the sink's pipeline
 * - a method `(context) => Promise<Lsn | null>` that reads the commit position of the last transaction applied, `null`
 *   when there is none. A slot that somebody moved cannot be told apart then: nothing is stored beside that position.
 *
 * A read that rejects is repeated like a lost connection; the pipeline never starts from the beginning instead.
 *
 * Every sink needs one, unless the library keeps its position (option `checkpointStore`): then it is refused.
 */
export function Checkpoint(): <F extends CheckpointReader>(
  prototype: object,
  property: string | symbol,
  descriptor?: TypedPropertyDescriptor<F>,
) => void {
  return (prototype, property) => {
    markMember('checkpoint', prototype, { property });
  };
}
