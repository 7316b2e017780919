import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import type { TestDatabase } from './test-database.js';

/** A sink that keeps its checkpoint and nothing else. */
@ReplicantSink()
export class IdleSink {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.query(sql, [...values]),
  );

  constructor(private readonly target: TestDatabase) {}

  @OnTransaction()
  async apply(transaction: Transaction): Promise<void> {
    await this.checkpoints.advance(
      (sql, values) => this.target.query(sql, [...values]),
      transaction,
    );
  }
}
