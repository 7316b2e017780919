import { Inject } from '@nestjs/common';
import { ClientProxy } from '@nestjs/microservices';
import { type Insert, OnChange, ReplicantSink } from 'nestjs-replicant';
import { lastValueFrom, timeout } from 'rxjs';
import { ORDER_EVENT, type OrderEvent, type OutboxRow } from '../schema.js';

/** Names the client of the billing service. */
export const BILLING = Symbol('BILLING');

const ANSWER_TIMEOUT_MS = 5_000;

/** Sends each event of the outbox, and waits until billing has booked it. */
@ReplicantSink()
export class OutboxRelay {
  constructor(@Inject(BILLING) private readonly billing: ClientProxy) {}

  @OnChange('public.outbox', { on: ['insert'] })
  async relay({ record }: Insert<'public.outbox', OutboxRow>): Promise<void> {
    const event: OrderEvent = {
      id: record.id,
      orderId: record.order_id,
      type: record.type,
      payload: record.payload,
    };
    // `send` and not `emit`: only the answer says that the event is booked.
    await lastValueFrom(
      this.billing.send(ORDER_EVENT, event).pipe(timeout(ANSWER_TIMEOUT_MS)),
    );
  }
}
