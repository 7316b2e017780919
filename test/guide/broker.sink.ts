import { Inject } from '@nestjs/common';
import { ClientProxy } from '@nestjs/microservices';
import {
  formatLsn,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { lastValueFrom, timeout } from 'rxjs';

type Shop = { 'public.orders': { id: number; total: number } };

@ReplicantSink()
export class OrderEvents {
  constructor(@Inject('BROKER') private readonly broker: ClientProxy) {}

  @OnTransaction()
  async publish(tx: Transaction<Shop>): Promise<void> {
    for await (const change of tx.changes) {
      if (change.op === 'truncate') continue;
      const row = change.op === 'delete' ? change.old.record : change.record;
      const event = {
        // The partition: events of one row stay in order.
        key: String(row.id),
        // By this a consumer knows an event that comes again.
        headers: { 'event-id': `${formatLsn(tx.commitLsn)}-${change.ordinal}` },
        value: JSON.stringify({ op: change.op, row }),
      };
      await lastValueFrom(
        this.broker.emit('orders', event).pipe(timeout(10_000)),
      );
    }
  }
}
