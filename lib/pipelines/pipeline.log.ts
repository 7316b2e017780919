import type { Logger } from '@nestjs/common';
import { formatLsn } from '../engine/model/lsn.js';
import type { Halt } from '../engine/model/halt.js';
import type { Pipeline } from '../engine/pipeline.js';

/**
 * Writes one line for the first stream, each halt, each return from one, each attempt to reconnect, each
 * change from and to standby, and each warning of a pipeline. What a
 * sink's own error says is never written: it may hold row values.
 */
export function logPipeline(pipeline: Pipeline, logger: Logger): void {
  const title = `Pipeline "${pipeline.name}"`;
  let halted: Halt | null = null;
  /** Since it was a standby it has not streamed. */
  let standby = false;
  pipeline.on('halt', ({ halt }) => {
    halted = halt;
    const at = halt.lsn === null ? '' : ` at ${formatLsn(halt.lsn)}`;
    logger.error(
      `${title} halted${at}: ${halt.code} (${halt.detail}). ${halt.remedy}`,
    );
  });
  pipeline.on('state', ({ from, to, reason }) => {
    if (to === 'standby') {
      logger.log(`${title} is standby: ${reason}`);
      standby = true;
    }
    if (to === 'connecting') standby = false;
    if (to !== 'streaming') return;
    if (halted !== null) {
      logger.log(`${title} streams again after ${halted.code}`);
    } else if (standby) {
      logger.log(`${title} takes over slot ${pipeline.options.slotName}`);
    } else if (from === 'connecting') {
      logger.log(`${title} streams from slot ${pipeline.options.slotName}`);
    }
    halted = null;
    standby = false;
  });
  pipeline.on('reconnect', ({ reason, attempt, delayMilliseconds }) => {
    logger.warn(
      `${title} reconnects in ${delayMilliseconds} ms (attempt ${attempt}): ${reason}`,
    );
  });
  pipeline.on('warning', ({ message }) => {
    logger.warn(`${title}: ${message}`);
  });
}
