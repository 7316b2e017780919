import { constants, type Stats } from 'node:fs';
import {
  chmod,
  lstat,
  mkdir,
  open,
  readdir,
  rmdir,
  statfs,
  unlink,
  type FileHandle,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ChecksumSeal, CipherSeal, type BlockSeal } from './block-seal.js';
import { codeOf, SpillError, spillError } from './spill-error.js';
import { SpillFile } from './spill-file.js';

const SUFFIX = '.spill';
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const NEW_FILE =
  constants.O_RDWR |
  constants.O_CREAT |
  constants.O_EXCL |
  constants.O_NOFOLLOW;

/** Types of `statfs(2)` of file systems that are memory. */
const IN_MEMORY = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
]);

/** Whom a folder of files belongs to. */
export interface SpillOwner {
  readonly systemIdentifier: string;
  readonly databaseOid: number;
  readonly slotName: string;
}

/** The folder of a slot below the one of the option. A slot name is safe as a file name, and the rest are digits. */
export function spillPath(dir: string, owner: SpillOwner): string {
  const { systemIdentifier, databaseOid, slotName } = owner;
  return join(dir, `${systemIdentifier}-${databaseOid}-${slotName}`);
}

/**
 * The folder in which transactions of one slot are kept on disk while they run. It is only touched while the slot is held, so nobody else
 * needs what lies in it: that is left of a process that was killed.
 */
export class SpillDirectory {
  readonly #path: string;
  readonly #seal: BlockSeal;
  readonly #files = new Set<SpillFile>();

  /** @param path - of the folder of the slot, see {@link spillPath} */
  constructor(path: string, encrypt: boolean) {
    this.#path = path;
    this.#seal = encrypt ? new CipherSeal() : new ChecksumSeal();
  }

  /**
   * Makes the folder, and empties it of files of this kind. Those of this object are removed too, and read no further.
   *
   * @returns a warning, for where the folder is in memory itself
   * @throws {SpillError} when the folder cannot be used
   */
  async prepare(): Promise<string | null> {
    await this.#removeFiles();
    this.#files.clear();
    try {
      await onceMoreWhenGone(async () => {
        await this.#makeFolder();
        await this.#sweep();
      });
    } catch (error) {
      throw spillError('preparing the spill folder', error);
    }
    return await this.#warning();
  }

  /** The file of a transaction, which is made once something is written to it. */
  file(xid: number): SpillFile {
    const file = new SpillFile({
      xid,
      path: join(this.#path, `${xid}${SUFFIX}`),
      seal: this.#seal,
      open: (path) => this.#open(path),
      onRemoved: () => this.#files.delete(file),
    });
    this.#files.add(file);
    return file;
  }

  /**
   * Removes all files, and the folder unless others have put something into it.
   *
   * @throws {SpillError} when something cannot be removed, after the rest is
   */
  async close(): Promise<void> {
    const [fault] = await this.#removeFiles();
    if (fault !== undefined) throw fault;
    try {
      await rmdir(this.#path);
    } catch (error) {
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(codeOf(error) ?? ''))
        throw spillError('removing the spill folder', error);
    }
  }

  async #removeFiles(): Promise<SpillError[]> {
    const ends = await Promise.allSettled(
      [...this.#files].map((file) => file.remove()),
    );
    return ends.flatMap((end) =>
      end.status === 'rejected'
        ? [spillError('removing a spill file', end.reason)]
        : [],
    );
  }

  async #makeFolder(): Promise<void> {
    await makeFolders(this.#path);
    const folder = await lstat(this.#path);
    const fault = folderFault(folder);
    if (fault !== null)
      throw new SpillError('folder', `the spill folder ${fault}`);
    if ((folder.mode & 0o777) !== FOLDER_MODE)
      await chmod(this.#path, FOLDER_MODE);
  }

  async #sweep(): Promise<void> {
    for (const entry of await readdir(this.#path, { withFileTypes: true })) {
      if (entry.name.endsWith(SUFFIX) && !entry.isDirectory())
        await unlinkIfThere(join(this.#path, entry.name));
    }
  }

  /** What somebody else has opened under that name stays with him, also without the name. */
  async #open(path: string): Promise<FileHandle> {
    return await onceMoreWhenGone(async () => {
      await this.#makeFolder();
      await unlinkIfThere(path);
      return await open(path, NEW_FILE, FILE_MODE);
    });
  }

  async #warning(): Promise<string | null> {
    const type = await fileSystemType(this.#path);
    const name = type === null ? undefined : IN_MEMORY.get(type);
    return name === undefined
      ? null
      : `streaming.spill.dir is on ${name}, which is memory, so that writing transactions there frees none: name a folder on a disk`;
  }
}

/**
 * Whoever has lost the slot and learns it late, such as a connection that was cut or another process, removes the folder when it is empty:
 * then it is made again.
 */
async function onceMoreWhenGone<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    return await action();
  }
}

/** Unlike `mkdir()` with its option `recursive`, which tries for ever where a file system lets nobody make a folder and says `ENOENT`. */
async function makeFolders(path: string): Promise<void> {
  try {
    await makeFolder(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolders(dirname(path));
    await makeFolder(path);
  }
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: FOLDER_MODE });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

async function unlinkIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

/** What forbids the use of a folder, if anything does. */
function folderFault(folder: Stats): string | null {
  if (folder.isSymbolicLink()) return 'is a symbolic link';
  if (!folder.isDirectory()) return 'is no folder';
  // Windows has no such owners.
  const user = process.getuid?.() ?? folder.uid;
  return folder.uid === user ? null : 'belongs to another user';
}

/** `null` where the system does not tell: only a warning depends on it. */
async function fileSystemType(path: string): Promise<number | null> {
  try {
    return (await statfs(path)).type >>> 0;
  } catch {
    return null;
  }
}
