import type { StoredCheckpoint } from '../model/checkpoint.js';
import { parseLsn, type Lsn } from '../model/lsn.js';
import { presentTextIn, textIn } from './checkpoint-query.js';
import type { CheckpointRow } from './checkpoint-query.js';

/** What the statement `load` has returned; `null` when there is no row of the slot. */
export function storedCheckpoint(row: CheckpointRow): StoredCheckpoint | null {
  const systemIdentifier = textIn(row, 'server');
  if (systemIdentifier === null) return null;
  return {
    commitLsn: lsnIn(row, 'committed'),
    confirmedLsn: lsnIn(row, 'confirmed'),
    systemIdentifier,
    timeline: Number(presentTextIn(row, 'timeline')),
    relations: textIn(row, 'relations'),
    progress: textIn(row, 'progress'),
  };
}

function lsnIn(row: CheckpointRow, column: string): Lsn | null {
  const text = textIn(row, column);
  if (text === null) return null;
  const lsn = parseLsn(text);
  if (lsn === null) {
    throw new TypeError(
      `The checkpoint table holds no position in the column read as ${column}.`,
    );
  }
  return lsn;
}
