import { type Message, OnMessage, ReplicantSink } from '../../../lib/index.js';
import { TransactionSink } from './transaction.sink.js';

/** Takes messages beside the transactions. */
@ReplicantSink()
export class MessagesSink extends TransactionSink {
  @OnMessage()
  async hear(message: Message): Promise<void> {
    await this.work.hear(message);
  }
}
