import { describe, expect, it } from 'vitest';
import { Arrival } from '../assemble/arrival.js';
import { RelationHistory } from '../assemble/relation-history.js';
import { SinkRetries } from '../deliver/sink-retries.js';
import type { ArrivingWork } from '../deliver/work.js';
import { deferred } from '../model/deferred.js';
import { SchemaChangeFault } from '../model/schema-change-fault.js';
import type { Transaction } from '../model/transaction.js';
import { PipelineDelivery } from './delivery.js';
import { SinkWork } from './work.js';
import { ShapeStorage } from './shapes.js';
import { Positions } from '../source/positions.js';

const transaction: Transaction = {
  pipeline: 'p',
  slotName: 's',
  xid: 1,
  commitLsn: 10n,
  commitEndLsn: 20n,
  commitTime: new Date(0),
  commitTimeMicros: 0n,
  changes: [],
  messages: [],
};

describe('a schema change', () => {
  it('ends the delivery when all before it is durable, and before a handler is given the transaction that carries it', async () => {
    const release = deferred<void>();
    const failed = deferred<unknown>();
    const handled: bigint[] = [];
    const checkpoint = {
      kind: 'reader',
      read: () => Promise.resolve(null),
    } as const;
    const delivery = new PipelineDelivery({
      sink: {
        name: 'S',
        checkpoint,
        transaction({ commitLsn }) {
          handled.push(commitLsn);
          return release.promise;
        },
      },
      around: null,
      batchLimits: null,
      context: {
        pipeline: 'p',
        slotName: 's',
        systemIdentifier: '1',
        timeline: 1,
      },
      retries: new SinkRetries({ maxRetries: 0, backoffMs: 1 }),
      tell: () => {},
      positions: new Positions(0n, false),
      work: new SinkWork(),
      shapes: new ShapeStorage(new RelationHistory(), checkpoint),
      insideDelivery: (work) => work(),
      delivered: () => {},
      blocked: () => false,
      progressed: () => {},
      warning: () => {},
      failed: (error) => failed.resolve(error),
    });
    const arrival = new Arrival([], 0, {
      drained: () => {},
      readToEnd: () => {},
    });
    const arriving: ArrivingWork = {
      kind: 'arriving',
      transaction: { ...transaction, commitLsn: 30n },
      arrival,
      shapes: [],
    };
    for (const commitLsn of [10n, 20n])
      delivery.push({
        kind: 'transaction',
        transaction: { ...transaction, commitLsn },
        changes: 0,
        bytes: 0,
        end: commitLsn + 5n,
        shapes: [],
      });
    delivery.push(arriving);
    const fault = new SchemaChangeFault([], 30n);
    arrival.fail(fault);
    delivery.push({ kind: 'end', fault });
    release.resolve();
    expect(await failed.promise).toBe(fault);
    expect(handled).toEqual([10n, 20n]);
  });
});
