import { Controller } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { ORDER_EVENT, type OrderEvent } from '../schema.js';
import { Ledger, type Receipt } from './ledger.js';

@Controller()
export class BillingController {
  constructor(private readonly ledger: Ledger) {}

  /** The answer goes out when the promise has resolved, so after the commit. */
  @MessagePattern(ORDER_EVENT)
  book(@Payload() event: OrderEvent): Promise<Receipt> {
    return this.ledger.book(event);
  }
}
