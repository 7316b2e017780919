import type { Lsn } from '../engine/model/lsn.js';
import type { SlotOriginContext } from '../engine/model/slot-origin.js';
import { markMember } from '../sinks/sink.metadata.js';
import type { HandlerDecorator } from './handler-decorator.js';

/**
 * Makes a method the judge of where the stream begins: `(origin, context) => Promise<void>`. It is asked on every connect, before
 * streaming. `origin` is a boundary: every transaction whose commit record starts at it or above it will be delivered, unless the
 * sink has it already; what is below will not come. Of a new slot it is the consistent point, of a slot that was there the higher one of its
 * confirmed position and the checkpoint.
 *
 * Resolving accepts the position; rejecting halts with `slot_origin/slot_origin_rejected`, and `halt.sinkError()` has the error.
 * A sink of kind `appendLog` needs it: nothing else can tell whether somebody moved the slot past the log's end.
 */
export function OnSlotOrigin(): HandlerDecorator<
  [origin: Lsn, context: SlotOriginContext]
> {
  return (prototype, property) => {
    markMember('slotOrigin', prototype, { property });
  };
}
