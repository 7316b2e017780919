import type { Lsn } from '../model/lsn.js';

/** What has to be copied before the stream: everything, as the session sees it that exports the snapshot, until it runs another command. */
export interface SnapshotPlan {
  readonly consistentPoint: Lsn;
  readonly snapshotName: string;
}
