import { readFileSync } from 'node:fs';

/** The frames of a recording of a real server in `test/fixtures`. A file of SQL beside it says how it was made. */
export function recordedFrames(name: string): Buffer[] {
  const recording: unknown = JSON.parse(
    readFileSync(new URL(`../fixtures/${name}`, import.meta.url), 'utf8'),
  );
  if (
    typeof recording !== 'object' ||
    recording === null ||
    !('frames' in recording) ||
    !Array.isArray(recording.frames)
  ) {
    throw new Error('not a recording');
  }
  return recording.frames.map((hex) => Buffer.from(String(hex), 'hex'));
}
