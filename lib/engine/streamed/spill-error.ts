import { errorClass } from '../model/error-class.js';

/** What is wrong with a spill file where it is not the system that says so. */
export type SpillFault =
  /** A block is not what was written. */
  | 'damaged'
  /** The file ends before its last block. */
  | 'truncated'
  /** The file was removed before it was read to its end. */
  | 'removed'
  /** The folder is none that may be used. */
  | 'folder';

/** What is on disk cannot be written, or not be used. Its message has no path and nothing of a row. */
export class SpillError extends Error {
  override readonly name = 'SpillError';

  /**
   * @param code - what is wrong, or the name of the system's error, such as ENOSPC
   */
  constructor(
    readonly code: SpillFault | `E${string}`,
    message: string,
  ) {
    super(message);
  }
}

const SYSTEM_ERROR = /^E[A-Z0-9_]{1,40}$/;

/** An error of the system as one of ours: its own message has a path. */
export function spillError(action: string, error: unknown): SpillError {
  if (error instanceof SpillError) return error;
  const code = codeOf(error);
  return new SpillError(
    isSystemError(code) ? code : 'EUNKNOWN',
    `${action} failed: ${isSystemError(code) ? code : errorClass(error)}`,
  );
}

/** The name of the error of the system; `null` for any other error. */
export function codeOf(error: unknown): string | null {
  return error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string'
    ? error.code
    : null;
}

function isSystemError(code: string | null): code is `E${string}` {
  return code !== null && SYSTEM_ERROR.test(code);
}
