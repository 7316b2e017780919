import type { BatchLimits } from '../deliver/open-batch.js';
import type { ResolvedOptions } from '../options/resolve-options.js';

/** What closes a batch; `null` when each transaction is durable by itself. */
export function batchLimits(
  options: Pick<
    ResolvedOptions,
    'batchDelivery' | 'checkpointStore' | 'maxInflightBytes'
  >,
): BatchLimits | null {
  const { batchDelivery, checkpointStore, maxInflightBytes } = options;
  const batch = batchDelivery ?? checkpointStore?.batch ?? null;
  // A part of what may be held, so that the next batch arrives while the sink works on one.
  return batch && { ...batch, maxBytes: maxInflightBytes / 4 };
}
