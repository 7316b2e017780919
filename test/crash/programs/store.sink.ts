import {
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from '../../../lib/index.js';
import { Work } from './work.js';

/** Leaves its checkpoint to the library: what comes again is applied again. */
@ReplicantSink()
export class StoreSink {
  constructor(protected readonly work: Work) {}

  @OnTransaction()
  async apply(transaction: Transaction): Promise<void> {
    await this.work.apply([transaction], async () => [transaction]);
  }
}
