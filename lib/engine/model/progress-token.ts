import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { HaltError } from './halt.js';
import {
  readStates,
  readTables,
  statesContent,
  tablesContent,
} from './progress-content.js';
import type { ProgressTable, SnapshotProgress } from './snapshot-progress.js';

const PREFIX = 'nestjs-replicant-snapshot:1:';
const TOKEN = /^([\w-]{43}):(([\w-]*):([\w-]*))$/;
/** Hundreds of thousands of tables, or the keys of as many rows. What is longer was not written here, nor was a longer list of tables. */
const LONGEST_TOKEN = 16 * 1024 * 1024;
const LONGEST_LIST = 16 * 1024 * 1024;

/**
 * Writes a progress as text, in characters that every encoding of a database has.
 *
 * @param list - its tables as {@link encodeTables} writes them, for who writes the same again and again
 */
export function encodeProgress(
  progress: SnapshotProgress,
  list = encodeTables(progress.tables),
): string {
  const states = Buffer.from(JSON.stringify(statesContent(progress)));
  const content = `${states.toString('base64url')}:${list}`;
  return `${PREFIX}${checksum(content)}:${content}`;
}

/** Writes which tables there are, and nothing of their states. With thousands of tables it is most of a progress, so it is compressed. */
export function encodeTables(tables: readonly ProgressTable[]): string {
  return deflateRawSync(JSON.stringify(tablesContent(tables))).toString(
    'base64url',
  );
}

/**
 * Reads what {@link encodeProgress} wrote, and nothing else.
 *
 * @throws {HaltError} `snapshot_progress_invalid`
 */
export function decodeProgress(token: string): SnapshotProgress {
  if (!token.startsWith('nestjs-replicant-snapshot:'))
    throw invalid('it does not begin as a progress does');
  if (!token.startsWith(PREFIX))
    throw invalid('another version of the library wrote it');
  if (token.length > LONGEST_TOKEN) throw invalid('it is too long');
  const match = TOKEN.exec(token.slice(PREFIX.length));
  if (match === null || match[1] !== checksum(match[2] ?? ''))
    throw invalid('it is cut off or changed');
  const progress = read(
    Buffer.from(match[3] ?? '', 'base64url').toString(),
    inflated(match[4] ?? ''),
  );
  if (progress === null)
    throw invalid('its content is not what a progress holds');
  return progress;
}

function read(states: string, list: string): SnapshotProgress | null {
  const tables = readTables(parsed(list));
  const progress = tables === null ? null : readStates(parsed(states), tables);
  // One text for one progress, before it is compressed: nothing was overlooked.
  return progress !== null &&
    JSON.stringify(statesContent(progress)) === states &&
    JSON.stringify(tablesContent(progress.tables)) === list
    ? progress
    : null;
}

/** An empty text for what is not compressed, or is too long. */
function inflated(compressed: string): string {
  try {
    return inflateRawSync(Buffer.from(compressed, 'base64url'), {
      maxOutputLength: LONGEST_LIST,
    }).toString();
  } catch {
    return '';
  }
}

function parsed(text: string): unknown {
  try {
    const content: unknown = JSON.parse(text);
    return content;
  } catch {
    return null;
  }
}

function checksum(content: string): string {
  return createHash('sha256').update(content).digest('base64url');
}

function invalid(detail: string): HaltError {
  return new HaltError('snapshot_progress_invalid', { detail });
}
