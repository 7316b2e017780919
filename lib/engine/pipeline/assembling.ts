import { Assembler } from '../assemble/assembler.js';
import type { Lsn } from '../model/lsn.js';
import { HAND_OVER_BYTES } from './backpressure.js';
import type { ConnectionSubject } from './subject.js';

/**
 * Makes what puts the messages of a connection together.
 *
 * @param skipThrough - transactions up to this commit position were applied before
 * @param drained - there is room for more
 */
export function makeAssembler(
  { pipeline, options, schema, skipping, ...subject }: ConnectionSubject,
  skipThrough: Lsn | null,
  drained: () => void,
): Assembler {
  const { slotName, maxInflightBytes, messages } = options;
  return new Assembler({
    pipeline,
    slotName,
    maxTransactionBytes: Math.min(maxInflightBytes, HAND_OVER_BYTES),
    maxMessageBytes: maxInflightBytes,
    messages,
    skipThrough,
    passOver: skipping,
    schema: schema.watch((change, commitLsn) =>
      subject.schemaChange(change, commitLsn),
    ),
    drained,
  });
}
