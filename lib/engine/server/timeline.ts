import { HaltError } from '../model/halt.js';
import { formatLsn, parseLsn, type Lsn } from '../model/lsn.js';
import type { SessionIdentity } from '../model/session-identity.js';
import { furthestOf, type CheckpointPosition } from './checkpoint-reading.js';
import type { CommandSession } from './session.js';

/** A timeline that a server has been on, and where it left it for the next. */
export interface TimelineSwitch {
  readonly timeline: number;
  readonly leftAt: Lsn;
}

/** How far a consumer got, and on which timeline. */
export interface TimelinePosition {
  readonly timeline: number;
  readonly lsn: Lsn;
}

/** Stands for the timeline of positions on a standby. */
export const UNKNOWN_TIMELINE = 0;

const LINE = /^\s*(\d{1,10})\s+([0-9A-Fa-f/]{3,17})(?:\s|$)/;

/**
 * Makes sure that what the checkpoint covers is part of this server's history. A standby that is promoted before it has
 * received everything goes on with other transactions in the same places.
 *
 * @throws {HaltError} `data_gap/timeline_diverged`
 * @see {@link https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-TIMELINES | Timelines}
 */
export async function requireCommonHistory(
  session: CommandSession,
  position: CheckpointPosition,
  { timeline }: SessionIdentity,
): Promise<void> {
  const lsn = furthestOf(position);
  const { timeline: stored = UNKNOWN_TIMELINE } = position;
  if (stored === UNKNOWN_TIMELINE || lsn === null) return;
  if (stored === timeline) return;
  const detail = findDivergence(
    { timeline: stored, lsn },
    timeline,
    // Of a timeline that was left there is nothing to ask.
    stored < timeline ? await readHistory(session, timeline) : [],
  );
  if (detail !== null)
    throw new HaltError('data_gap/timeline_diverged', { detail });
}

/**
 * Why a position is not part of the history of a timeline; `null` when it is. Pure.
 *
 * @param history - of that timeline; `null` when it cannot be read
 */
export function findDivergence(
  stored: TimelinePosition,
  timeline: number,
  history: readonly TimelineSwitch[] | null,
): string | null {
  const checkpoint = `the checkpoint is at ${formatLsn(stored.lsn)} of timeline ${stored.timeline}`;
  if (history === null)
    return `${checkpoint}, and the history of timeline ${timeline} cannot be read`;
  const left = history.find((past) => past.timeline === stored.timeline);
  if (left === undefined)
    return `${checkpoint}, which the server's timeline ${timeline} does not descend from`;
  return stored.lsn > left.leftAt
    ? `${checkpoint}, which the server left at ${formatLsn(left.leftAt)}`
    : null;
}

/** Reads the lines of a history file; `null` when it is none. Pure. */
export function parseTimelineHistory(
  content: string,
): readonly TimelineSwitch[] | null {
  const switches: TimelineSwitch[] = [];
  for (const line of content.split('\n')) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const match = LINE.exec(line);
    const leftAt = parseLsn(match?.[2] ?? '');
    if (match === null || leftAt === null) return null;
    switches.push({ timeline: Number(match[1]), leftAt });
  }
  return switches;
}

/** @see {@link https://www.postgresql.org/docs/current/protocol-replication.html#PROTOCOL-REPLICATION-TIMELINE-HISTORY | TIMELINE_HISTORY} */
async function readHistory(
  session: CommandSession,
  timeline: number,
): Promise<readonly TimelineSwitch[] | null> {
  const rows = await session.query(`TIMELINE_HISTORY ${timeline}`);
  const content = rows[0]?.['content'];
  return typeof content === 'string' ? parseTimelineHistory(content) : null;
}
