import type { Logger } from '@nestjs/common';
import { formatLsn } from '../engine/model/lsn.js';
import type { Halt } from '../engine/model/halt.js';
import type { Pipeline } from '../engine/pipeline.js';

/**
 * Writes one line for each halt, each return from one, each lost connection and each warning of a pipeline. What a
 * sink's own error says is never written: it may hold row values.
 */
export function logPipeline(pipeline: Pipeline, logger: Logger): void {
  const title = `Pipeline "${pipeline.name}"`;
  let halted: Halt | null = null;
  pipeline.on('halt', ({ halt }) => {
    halted = halt;
    const at = halt.lsn === null ? '' : ` at ${formatLsn(halt.lsn)}`;
    logger.error(
      `${title} halted${at}: ${halt.code} (${halt.detail}). ${halt.remedy}`,
    );
  });
  pipeline.on('state', ({ to, reason }) => {
    if (to === 'reconnecting')
      logger.warn(
        `${title} reconnects: ${reason ?? 'the connection was lost'}`,
      );
    if (to !== 'streaming' || halted === null) return;
    logger.log(`${title} streams again after ${halted.code}`);
    halted = null;
  });
  pipeline.on('warning', ({ message }) => {
    logger.warn(`${title}: ${message}`);
  });
}
