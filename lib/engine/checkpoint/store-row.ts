import type {
  CheckpointContext,
  StoredCheckpoint,
} from '../model/checkpoint.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import { fetchRow, textIn } from './checkpoint-query.js';
import type { CheckpointRow } from './checkpoint-query.js';
import type { OpenedStore } from './store-session.js';
import { storedCheckpoint } from './stored-checkpoint.js';

/** What the row of the library holds, as far as that decides about a write. */
export interface StoreState {
  readonly commitLsn: Lsn | null;
  readonly confirmedLsn: Lsn | null;
  readonly progress: string | null;
}

/** Of a row that is to be made. */
export const NOTHING_STORED: StoreState = {
  commitLsn: null,
  confirmedLsn: null,
  progress: null,
};

/** One write: whose row it is, what it holds so far (`null` when there is none), and what it is to hold. */
export interface StoreWrite {
  readonly context: CheckpointContext;
  readonly row: StoreState | null;
  readonly next: StoreState;
}

export function stateOf({
  commitLsn,
  confirmedLsn,
  progress = null,
}: StoredCheckpoint): StoreState {
  return { commitLsn, confirmedLsn, progress };
}

export function isSame(
  one: StoreState | null,
  other: StoreState | null,
): boolean {
  return (
    (one === null) === (other === null) &&
    one?.commitLsn === other?.commitLsn &&
    one?.confirmedLsn === other?.confirmedLsn &&
    one?.progress === other?.progress
  );
}

export async function readRow(
  { query, statements }: OpenedStore,
  slotName: string,
): Promise<StoredCheckpoint | null> {
  return storedCheckpoint(await fetchRow(query, statements.load, [slotName]));
}

/**
 * Writes positions.
 *
 * @param relations shapes that changed; `null` for none
 * @returns whether they were written
 */
export async function putPositions(
  { query, statements }: OpenedStore,
  { context, row, next }: StoreWrite,
  relations: string | null,
): Promise<boolean> {
  const values = [...keyOf(context), relations, ...positionsOf(next)];
  return isWritten(
    row === null
      ? await fetchRow(query, statements.begin, values)
      : await fetchRow(query, statements.move, [
          ...values,
          ...positionsOf(row),
        ]),
  );
}

/** Writes the progress of a snapshot in the same way. */
export async function putProgress(
  { query, progress }: OpenedStore,
  { context, row, next }: StoreWrite,
): Promise<boolean> {
  const values = [...keyOf(context), next.progress];
  return isWritten(
    row === null
      ? await fetchRow(query, progress.begin, values)
      : await fetchRow(query, progress.move, [
          ...values,
          row.progress,
          ...positionsOf(row),
        ]),
  );
}

/** Whether a write that wrote nothing was made before, and its answer lost. */
export async function isStored(
  store: OpenedStore,
  { context: { slotName, systemIdentifier }, next }: StoreWrite,
): Promise<boolean> {
  const found = await readRow(store, slotName);
  return (
    found?.systemIdentifier === systemIdentifier && isSame(stateOf(found), next)
  );
}

function isWritten(row: CheckpointRow): boolean {
  return textIn(row, 'server') !== null;
}

function keyOf({
  slotName,
  systemIdentifier,
  timeline,
}: CheckpointContext): readonly string[] {
  return [slotName, systemIdentifier, String(timeline)];
}

function positionsOf({
  commitLsn,
  confirmedLsn,
}: StoreState): readonly (string | null)[] {
  return [commitLsn, confirmedLsn].map((lsn) =>
    lsn === null ? null : formatLsn(lsn),
  );
}
