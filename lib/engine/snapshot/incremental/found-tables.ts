import type { Lsn } from '../../model/lsn.js';
import type { SnapshotProgress } from '../../model/snapshot-progress.js';
import type { TypesOption } from '../../options/pipeline-options.js';
import type { CaptureSet } from '../../server/capture/capture-set.js';
import type { CommandSession, SessionTarget } from '../../server/session.js';
import { withWatchedSession } from '../../server/watched-session.js';
import { BackfillPlan, nameOf } from './backfill-plan.js';
import { type CopyableTable, discover, makeCopyable } from './discovery.js';
import { readNextXid } from './transactions.js';

/** Where a backfill begins, and what it copies. */
export interface FindingPorts {
  readonly target: SessionTarget;
  readonly capture: CaptureSet;
  readonly types: TypesOption;
  /** Where the slot begins; that of the progress counts when there is one. */
  readonly floor: Lsn;
  /** What is stored; `null` when nothing is. */
  readonly progress: SnapshotProgress | null;
  /** What commits up to here was applied, and is not handed over again; `null` for nothing. */
  readonly appliedThrough: Lsn | null;
  /** What commits from here on comes by the stream, also when it was applied. */
  readonly streamedFrom: Lsn;
  /** Nothing was ever delivered through this slot. */
  readonly fresh: boolean;
}

/** What there is to copy. */
export interface FoundTables {
  readonly plan: BackfillPlan;
  readonly copyable: readonly CopyableTable[];
  /** What chunks of all of them have to see; `null` for nothing. */
  readonly notBefore: bigint | null;
}

/**
 * Finds out what there is to copy.
 *
 * @throws {HaltError} `preflight/select_privilege`, `preflight/row_security`, `publication/column_lists`
 */
export async function findTables(ports: FindingPorts): Promise<FoundTables> {
  return withWatchedSession(ports.target, async (session) => {
    if (ports.progress?.complete === true)
      return everythingCopied(session, ports, ports.progress);
    const readable = await discover(session, ports.capture);
    const tables = readable.map(({ table }) => table);
    const plan = new BackfillPlan({ ...ports, tables });
    const open = readable.filter(
      ({ table }) => plan.find(table.oid)?.isDone === false,
    );
    const copyable = await makeCopyable(session, ports.types, open);
    const notBefore = await readNextXid(session);
    return { plan, copyable, notBefore };
  });
}

/** Nothing is read of tables then, so that no lock on one is waited for. */
async function everythingCopied(
  session: CommandSession,
  ports: FindingPorts,
  progress: SnapshotProgress,
): Promise<FoundTables> {
  const names = await ports.capture.names(session);
  const published = new Set(names.map(nameOf));
  const tables = progress.tables.filter((one) => published.has(nameOf(one)));
  return {
    plan: new BackfillPlan({
      ...ports,
      tables: [],
      progress: { ...progress, tables },
    }),
    copyable: [],
    notBefore: null,
  };
}
