import {
  OnSnapshot,
  ReplicantSink,
  type SnapshotContext,
} from '../../../lib/index.js';
import type { AnySnapshotRow } from '../../../lib/engine/model/snapshot.js';
import { StoreSink } from './store.sink.js';
import { TransactionSink } from './transaction.sink.js';

/** Keeps its checkpoint, and how far its copy is. */
@ReplicantSink()
export class CopyingSink extends TransactionSink {
  @OnSnapshot()
  async copy(
    rows: readonly AnySnapshotRow[],
    context: SnapshotContext,
  ): Promise<void> {
    await this.work.copy(rows, context, (query) =>
      this.checkpoints.keepProgress(query, context),
    );
  }
}

/** Leaves both to the library. */
@ReplicantSink()
export class CopyingStoreSink extends StoreSink {
  @OnSnapshot()
  async copy(
    rows: readonly AnySnapshotRow[],
    context: SnapshotContext,
  ): Promise<void> {
    await this.work.copy(rows, context, async () => {});
  }
}
