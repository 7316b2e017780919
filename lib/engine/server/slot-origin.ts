import { formatLsn, type Lsn } from '../model/lsn.js';
import { requireAcceptance } from './acceptance.js';
import type { ChainSubject } from './chain-subject.js';
import type { CommandSession } from './session.js';

/**
 * Asks the sink whether the stream may begin here. To be called before anything about the position is stored.
 *
 * @param reused - the slot was there already
 * @throws {HaltError} `slot_origin/slot_origin_rejected`
 */
export async function approveOrigin(
  session: CommandSession,
  { pipeline, options, sink }: ChainSubject,
  origin: Lsn,
  reused: boolean,
): Promise<void> {
  const { slotOrigin } = sink;
  if (slotOrigin === undefined) return;
  const { slotName } = options;
  await requireAcceptance(
    session,
    'slot_origin/slot_origin_rejected',
    `@OnSlotOrigin() of ${sink.name}, asked about ${formatLsn(origin)},`,
    () => slotOrigin(origin, { pipeline, slotName, reused }),
  );
}
