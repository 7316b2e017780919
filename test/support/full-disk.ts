import { execFile } from 'node:child_process';
import {
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  rm,
  rmdir,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished, vi } from 'vitest';

const run = promisify(execFile);

const DISK_BYTES = 8 * 1024 * 1024;
/** What a disk still takes that is as good as full: less than what a test writes. */
const LEFT_BYTES = 1024 * 1024;

/** A folder on a disk that has no room, until some is made. It goes with the test. */
export interface FullDisk {
  readonly folder: string;
  makeRoom(): Promise<void>;
}

/** Ways to come by a full disk: a file system of its own only where one may be mounted. */
export async function fullDisks(): Promise<
  readonly { readonly name: string; readonly make: () => Promise<FullDisk> }[]
> {
  const device = { name: 'a device without room', make: fullDevice };
  return (await mayMount())
    ? [{ name: 'a file system without room', make: fullFileSystem }, device]
    : [device];
}

/**
 * Nothing stays mounted when the test is killed: the file system has no name, is reached through a descriptor of this process, and goes
 * with that.
 */
async function fullFileSystem(): Promise<FullDisk> {
  const disk = await mounted();
  onTestFinished(() => disk.close());
  const root = `/proc/${process.pid}/fd/${disk.fd}`;
  const ballast = join(root, 'ballast');
  await writeFile(ballast, Buffer.alloc(DISK_BYTES - LEFT_BYTES));
  const folder = join(root, 'spill');
  await mkdir(folder);
  return {
    folder,
    makeRoom: () => rm(ballast),
  };
}

/** Whatever is written to an open file by parts goes to a device of the system that is always full. */
async function fullDevice(): Promise<FullDisk> {
  const folder = await mkdtemp(join(tmpdir(), 'spill-'));
  const device = await open('/dev/full', 'r+');
  const handles = Reflect.getPrototypeOf(device);
  if (!isHandle(handles)) throw new Error('There is no such method.');
  const intoDevice = device.writev.bind(device);
  const writing = vi.spyOn(handles, 'writev').mockImplementation(intoDevice);
  onTestFinished(async () => {
    writing.mockRestore();
    await device.close();
    await rm(folder, { recursive: true });
  });
  return {
    folder,
    makeRoom: async () => {
      writing.mockRestore();
    },
  };
}

function isHandle(methods: object | null): methods is FileHandle {
  return methods !== null && 'writev' in methods;
}

async function mayMount(): Promise<boolean> {
  try {
    const disk = await mounted();
    await disk.close();
    return true;
  } catch {
    return false;
  }
}

async function mounted(): Promise<FileHandle> {
  const place = await mkdtemp(join(tmpdir(), 'disk-'));
  try {
    await run('mount', [
      '-t',
      'tmpfs',
      '-o',
      `size=${DISK_BYTES}`,
      'tmpfs',
      place,
    ]);
    try {
      return await open(place);
    } finally {
      await run('umount', ['--lazy', place]);
    }
  } finally {
    await rmdir(place);
  }
}
