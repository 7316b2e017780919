import type { Type } from '@nestjs/common';
import type { PipelineOptions } from '../../../lib/index.js';
import type { Delivery } from '../../../lib/engine/model/delivery.js';
import { setting } from '../../apps/settings.js';
import {
  CHUNK_ROWS,
  MAX_TRANSACTIONS,
  type ModeName,
  SPILLED_ABOVE,
} from '../modes.js';
import { BatchSink } from './batch.sink.js';
import { CopyingSink, CopyingStoreSink } from './copying.sinks.js';
import { MessagesSink } from './messages.sink.js';
import { isWhole } from './copy-rows.js';
import type { Points } from './points.js';
import { StoreSink } from './store.sink.js';
import { TransactionSink } from './transaction.sink.js';

/** What makes an application one of a mode. */
export interface ModeProgram {
  readonly sink: Type<object>;
  /** Beside those that all modes have. */
  readonly options: (points: Points) => Partial<PipelineOptions>;
}

const CHUNKS = { mode: 'incremental', chunkRows: CHUNK_ROWS } as const;
/** More than there ever is. */
const MAX_SPILL_BYTES = 1024 ** 3;
const BATCH = { maxTransactions: MAX_TRANSACTIONS, maxDelayMs: 1_000 };

const TRANSACTION: ModeProgram = {
  sink: TransactionSink,
  options: () => ({}),
};
const MESSAGES: ModeProgram = {
  sink: MessagesSink,
  options: () => ({ messages: true }),
};

export const MODE_PROGRAMS: Readonly<Record<ModeName, ModeProgram>> = {
  transaction: TRANSACTION,
  batch: { sink: BatchSink, options: () => ({ batchDelivery: BATCH }) },
  lib: {
    sink: StoreSink,
    options: (points) => ({
      checkpointStore: { connection: setting('TARGET_URL') },
      async around(_delivery, next) {
        await next();
        await points.at('before the store');
      },
    }),
  },
  'lib-batch': {
    sink: StoreSink,
    options: (points) => ({
      checkpointStore: { connection: setting('TARGET_URL'), batch: BATCH },
      async around(delivery, next) {
        await next();
        if (!travelsAlone(delivery)) points.unstored += 1;
        if (travelsAlone(delivery) || points.unstored >= MAX_TRANSACTIONS)
          await points.at('before the store');
        else if (points.unstored > 1) await points.at('in a batch');
      },
    }),
  },
  messages: MESSAGES,
  incremental: { sink: CopyingSink, options: () => ({ snapshot: CHUNKS }) },
  'incremental-lib': {
    sink: CopyingStoreSink,
    options: (points) => ({
      snapshot: CHUNKS,
      checkpointStore: { connection: setting('TARGET_URL') },
      async around(delivery, next) {
        await next();
        if (delivery.kind === 'transaction')
          await points.at('before the store');
        else if (delivery.kind === 'snapshot' && isWhole(delivery.rows))
          await points.at('before the store of a chunk');
      },
    }),
  },
  initial: { sink: CopyingSink, options: () => ({ snapshot: true }) },
  streamed: {
    sink: MessagesSink,
    options: () => ({ messages: true, streaming: {} }),
  },
  spilled: {
    sink: MessagesSink,
    options: () => ({
      messages: true,
      maxInflightBytes: SPILLED_ABOVE,
      streaming: {
        spill: {
          dir: setting('SPILL_DIR'),
          maxSpillBytes: MAX_SPILL_BYTES,
        },
      },
    }),
  },
  wal2json: MESSAGES,
  pglogical: TRANSACTION,
};

/** Its checkpoint is stored on its own. */
function travelsAlone(delivery: Delivery): boolean {
  return (
    delivery.kind === 'transaction' &&
    Symbol.asyncIterator in delivery.transaction.changes
  );
}
