import type { Logger } from '@nestjs/common';
import { formatLsn } from '../engine/model/lsn.js';
import type { Halt } from '../engine/model/halt.js';
import type { Pipeline } from '../engine/pipeline.js';

/** A reason that stays the same is written again after this time. */
const REPEAT_MS = 30_000;

/**
 * Writes one line for the beginning of each stream, each halt, each attempt to connect again or to deliver again for a new reason,
 * each change to standby, each step of a snapshot, each schema change that passes, each transaction that was passed over, and each warning
 * of a pipeline.
 * What a sink's own error says is never written: it may hold row values.
 */
export function logPipeline(pipeline: Pipeline, logger: Logger): void {
  const title = `Pipeline "${pipeline.name}"`;
  const { slotName } = pipeline.options;
  let halted: Halt | null = null;
  /** Since it was a standby it has not streamed. */
  let standby = false;
  const news = new News();
  const retries = new News();
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
      logger.log(`${title} takes over slot ${slotName}`);
    } else if (from === 'reconnecting') {
      logger.log(`${title} streams again`);
    } else {
      logger.log(`${title} streams from slot ${slotName}`);
    }
    halted = null;
    standby = false;
    news.over();
  });
  pipeline.on('reconnect', ({ reason, attempt, delayMilliseconds }) => {
    if (!news.isNew(reason)) return;
    logger.warn(
      `${title} connects again in ${delayMilliseconds} ms (attempt ${attempt}): ${reason}`,
    );
  });
  pipeline.on(
    'retry',
    ({ of, reason, attempt, maxRetries, delayMilliseconds }) => {
      if (!retries.isNew(`${of}: ${reason}`)) return;
      logger.warn(
        `${title} tries the ${of} again in ${delayMilliseconds} ms (attempt ${attempt} of ${maxRetries}): ${reason}`,
      );
    },
  );
  pipeline.on('skipped', ({ of, lsn }) => {
    logger.warn(
      `${title} has passed over the ${of} at ${formatLsn(lsn)} as skipTransaction() was told: the sink never gets it`,
    );
  });
  pipeline.on('schemaChange', ({ change, commitLsn }) => {
    const { effect, relation, detail } = change;
    logger.log(
      `${title} goes on with the ${effect} schema change at ${formatLsn(commitLsn)}: ${relation}: ${detail}`,
    );
  });
  pipeline.on('snapshotStarted', ({ mode, tables, done, resumed }) => {
    const beside = done === 0 ? '' : `, beside ${done} copied before`;
    logger.log(
      resumed
        ? `${title} goes on with the ${mode} snapshot: ${done} of ${counted(tables, 'table')} done`
        : `${title} copies the rows of ${counted(tables - done, 'table')} (${mode} snapshot)${beside}`,
    );
  });
  pipeline.on('snapshotTable', ({ table, rows }) => {
    logger.log(`${title} has copied ${table}: ${counted(rows, 'row')}`);
  });
  pipeline.on('snapshotTableAgain', ({ table }) => {
    logger.log(
      `${title} copies ${table} again, since it was written to meanwhile and has no key`,
    );
  });
  pipeline.on(
    'snapshotCompleted',
    ({ mode, tables, rows, durationMilliseconds }) => {
      const seconds = (durationMilliseconds / 1_000).toFixed(1);
      logger.log(
        `${title} has completed the ${mode} snapshot of ${counted(tables, 'table')}: ${counted(rows, 'row')} in ${seconds} s`,
      );
    },
  );
  pipeline.on('warning', ({ message }) => {
    logger.warn(`${title}: ${message}`);
  });
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Whoever waits for a slot looks every second or two: that is not worth a line each time. */
class News {
  #reason: string | null = null;
  #toldAt = 0;

  isNew(reason: string): boolean {
    const now = performance.now();
    if (reason === this.#reason && now - this.#toldAt < REPEAT_MS) return false;
    this.#reason = reason;
    this.#toldAt = now;
    return true;
  }

  over(): void {
    this.#reason = null;
  }
}
