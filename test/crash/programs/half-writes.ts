import { type FileHandle, open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Points } from './points.js';

/** Lets this process stand in the middle of a write to a file. */
export async function standInWrites(points: Points): Promise<void> {
  const file = await open(fileURLToPath(import.meta.url));
  const prototype: unknown = Object.getPrototypeOf(file);
  await file.close();
  if (!writes(prototype)) throw new Error('Files are written otherwise.');
  const { writev } = prototype;
  prototype.writev = async function <
    T extends readonly NodeJS.ArrayBufferView[],
  >(this: FileHandle, parts: T, position?: number) {
    if (points.wants('while it is written to disk')) {
      await writev.call(this, halfOf(parts), position);
      await points.at('while it is written to disk');
    }
    return writev.call<FileHandle, [T, number?], ReturnType<typeof writev<T>>>(
      this,
      parts,
      position,
    );
  };
}

function writes(prototype: unknown): prototype is Pick<FileHandle, 'writev'> {
  return (
    typeof prototype === 'object' && prototype !== null && 'writev' in prototype
  );
}

/** All but the last part, and half of that one. */
function halfOf(
  parts: readonly NodeJS.ArrayBufferView[],
): readonly NodeJS.ArrayBufferView[] {
  return parts.map((part, index) =>
    index < parts.length - 1
      ? part
      : new Uint8Array(part.buffer, part.byteOffset, part.byteLength >> 1),
  );
}
