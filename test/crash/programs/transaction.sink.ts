import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from '../../../lib/index.js';
import { Target } from '../../apps/target.module.js';
import { Work } from './work.js';

/** Keeps its checkpoint, and takes one transaction at a time. */
@ReplicantSink()
export class TransactionSink {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.pool.query(sql, [...values]),
  );

  constructor(
    private readonly target: Target,
    protected readonly work: Work,
  ) {}

  @OnTransaction()
  async apply(transaction: Transaction): Promise<void> {
    await this.work.apply([transaction], async (query) =>
      (await this.checkpoints.advance(query, transaction)) ? [transaction] : [],
    );
  }
}
