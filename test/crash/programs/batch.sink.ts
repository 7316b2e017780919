import {
  Checkpoint,
  CheckpointTable,
  OnBatch,
  ReplicantSink,
  type Transaction,
} from '../../../lib/index.js';
import { Target } from '../../apps/target.module.js';
import { Work } from './work.js';

/** Keeps its checkpoint, and takes several transactions at a time. */
@ReplicantSink()
export class BatchSink {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.pool.query(sql, [...values]),
  );

  constructor(
    private readonly target: Target,
    private readonly work: Work,
  ) {}

  @OnBatch()
  async apply(transactions: readonly Transaction[]): Promise<void> {
    await this.work.apply(transactions, (query) =>
      this.checkpoints.advance(query, transactions),
    );
  }
}
