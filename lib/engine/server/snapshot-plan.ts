import type { Lsn } from '../model/lsn.js';
import type { SnapshotProgress } from '../model/snapshot-progress.js';

/** What has to be copied on a connection. */
export type SnapshotPlan =
  /** Everything, before the stream: from the snapshot that the session exports as long as it runs no other command. */
  | {
      readonly kind: 'initial';
      readonly consistentPoint: Lsn;
      readonly snapshotName: string;
    }
  /** What is left by this progress, beside the stream; nothing, when it is complete. */
  | { readonly kind: 'incremental'; readonly progress: SnapshotProgress };
