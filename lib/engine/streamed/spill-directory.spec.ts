import { existsSync } from 'node:fs';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  statfs,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SpillDirectory, spillPath } from './spill-directory.js';
import type { SpillFile } from './spill-file.js';

const ROW = Buffer.from('the row of a customer');

describe('SpillDirectory', () => {
  let root: string;
  let path: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'spilling-'));
    path = spillPath(join(root, 'spill'), {
      systemIdentifier: '7500000000000000001',
      databaseOid: 16_384,
      slotName: 'orders',
    });
  });

  afterEach(async () => {
    vi.restoreAllMocks();
    await rm(root, { recursive: true });
  });

  async function contents(file: SpillFile): Promise<string> {
    const blocks: Buffer[] = [];
    for await (const block of file.blocks()) blocks.push(block);
    return Buffer.concat(blocks).toString();
  }

  async function mode(name: string): Promise<string> {
    return ((await stat(name)).mode & 0o7777).toString(8);
  }

  it('says so where nobody can make a folder, and does not try for ever', async () => {
    const nowhere = new SpillDirectory('/proc/1/spill/slot', false);
    await expect(nowhere.prepare()).rejects.toMatchObject({
      name: 'SpillError',
    });
  });

  it('has a folder for each slot of each database', () => {
    expect(path).toBe(join(root, 'spill', '7500000000000000001-16384-orders'));
  });

  it('keeps folder and files to their user', async () => {
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    await directory.file(5).write([ROW]);
    expect(await mode(join(root, 'spill'))).toBe('700');
    expect(await mode(path)).toBe('700');
    expect(await mode(join(path, '5.spill'))).toBe('600');
    await directory.close();
  });

  it('takes back from others what they may do in a folder of its own', async () => {
    await mkdir(path, { recursive: true });
    await chmod(path, 0o777);
    await new SpillDirectory(path, false).prepare();
    expect(await mode(path)).toBe('700');
  });

  it('refuses a folder of another user', async () => {
    await mkdir(path, { recursive: true });
    const { uid } = await stat(path);
    vi.spyOn(process, 'getuid').mockReturnValue(uid + 1);
    await expect(
      new SpillDirectory(path, false).prepare(),
    ).rejects.toMatchObject({
      name: 'SpillError',
      code: 'folder',
      message: 'the spill folder belongs to another user',
    });
  });

  it('refuses a symbolic link, and leaves alone what it leads to', async () => {
    const other = join(root, 'other');
    await mkdir(other, { recursive: true });
    await writeFile(join(other, '1.spill'), '');
    await mkdir(join(root, 'spill'));
    await symlink(other, path);
    await expect(
      new SpillDirectory(path, false).prepare(),
    ).rejects.toMatchObject({
      code: 'folder',
      message: 'the spill folder is a symbolic link',
    });
    expect(await readdir(other)).toEqual(['1.spill']);
  });

  it('says what keeps it from making the folder', async () => {
    await writeFile(join(root, 'spill'), '');
    await expect(
      new SpillDirectory(path, false).prepare(),
    ).rejects.toMatchObject({
      code: 'ENOTDIR',
      message: 'preparing the spill folder failed: ENOTDIR',
    });
    await rm(join(root, 'spill'));
    await mkdir(join(root, 'spill'));
    await writeFile(path, '');
    await expect(
      new SpillDirectory(path, false).prepare(),
    ).rejects.toMatchObject({
      code: 'folder',
      message: 'the spill folder is no folder',
    });
  });

  it('removes files that a killed process has left, and nothing else', async () => {
    await mkdir(join(path, 'folder.spill'), { recursive: true });
    const target = join(root, 'target');
    await writeFile(target, 'kept');
    await symlink(target, join(path, '3.spill'));
    for (const name of ['1.spill', '2.spill', 'notes.txt', 'spill'])
      await writeFile(join(path, name), '');
    await new SpillDirectory(path, false).prepare();
    expect((await readdir(path)).toSorted()).toEqual([
      'folder.spill',
      'notes.txt',
      'spill',
    ]);
    expect(await readFile(target, 'utf8')).toBe('kept');
  });

  it('leaves alone the folders of other slots', async () => {
    const other = new SpillDirectory(`${path}_2`, false);
    await other.prepare();
    const file = other.file(1);
    await file.write([ROW]);
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    await directory.close();
    expect(await readdir(`${path}_2`)).toEqual(['1.spill']);
    await other.close();
  });

  it('removes its files when it is prepared again, also one that is being read', async () => {
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    const read = directory.file(1);
    await read.write([ROW, ROW]);
    const blocks = read.blocks();
    await blocks.next();
    const writing = directory.file(2).write([ROW]);
    await directory.prepare();
    await writing;
    expect(await readdir(path)).toEqual([]);
    await expect(blocks.next()).rejects.toMatchObject({ code: 'removed' });
    const again = directory.file(1);
    await again.write([ROW]);
    expect(await contents(again)).toBe(ROW.toString());
    await directory.close();
  });

  it('waits for a removal that is running', async () => {
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    const file = directory.file(1);
    await file.write([ROW]);
    const end: string[] = [];
    const removing = file.remove().then(() => end.push('removed'));
    await directory.prepare().then(() => end.push('prepared'));
    await removing;
    expect(end).toEqual(['removed', 'prepared']);
  });

  it('removes files and folder when it is closed, and may be prepared again', async () => {
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    await directory.file(1).write([ROW]);
    await directory.file(2).write([ROW]);
    directory.file(3);
    await directory.close();
    expect(await readdir(join(root, 'spill'))).toEqual([]);
    await directory.close();
    await directory.prepare();
    expect(await readdir(path)).toEqual([]);
  });

  it('leaves the folder when something of others is in it', async () => {
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    await directory.file(1).write([ROW]);
    await writeFile(join(path, 'notes.txt'), '');
    await directory.close();
    expect(await readdir(path)).toEqual(['notes.txt']);
  });

  it('says when it is closed what could not be removed', async () => {
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    await directory.file(1).write([ROW]);
    await directory.file(2).write([ROW]);
    await unlink(join(path, '1.spill'));
    await mkdir(join(path, '1.spill'));
    await expect(directory.close()).rejects.toThrow(
      /^removing a spill file failed: (EISDIR|EPERM)$/,
    );
    expect(await readdir(path)).toEqual(['1.spill']);
  });

  it('is not disturbed by a process that lost the slot and does not know it', async () => {
    const lost = new SpillDirectory(path, false);
    await lost.prepare();
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    // The folder is empty, and is removed with the rest.
    await lost.close();
    const one = directory.file(1);
    await one.write([ROW]);
    const theirs = lost.file(2);
    await theirs.write([Buffer.from('theirs')]);
    const two = directory.file(2);
    await two.write([ROW]);
    await lost.close();
    expect(await contents(one)).toBe(ROW.toString());
    expect(await contents(two)).toBe(ROW.toString());
    await directory.close();
  });

  it('is prepared while the folder is removed by one that is being closed', async () => {
    for (let round = 0; round < 100; round += 1) {
      const lost = new SpillDirectory(path, false);
      await lost.prepare();
      const directory = new SpillDirectory(path, false);
      const preparing = directory.prepare();
      // At different moments of it.
      for (let turn = 0; turn < round % 10; turn += 1)
        await new Promise(setImmediate);
      await Promise.all([preparing, lost.close()]);
      const file = directory.file(1);
      await file.write([ROW]);
      expect(await contents(file)).toBe(ROW.toString());
      await directory.close();
    }
  });

  it('follows no link where a file is to be', async () => {
    const target = join(root, 'target');
    await writeFile(target, 'kept');
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    await symlink(target, join(path, '1.spill'));
    const file = directory.file(1);
    await file.write([ROW]);
    expect(await readFile(target, 'utf8')).toBe('kept');
    expect(await contents(file)).toBe(ROW.toString());
    await directory.close();
  });

  it.each([false, true])('encrypts when it is told to: %s', async (encrypt) => {
    const directory = new SpillDirectory(path, encrypt);
    await directory.prepare();
    const [one, two] = [directory.file(1), directory.file(2)];
    await one.write([ROW]);
    await two.write([ROW]);
    const bytes = await readFile(join(path, '1.spill'));
    expect(bytes.includes(ROW)).toBe(!encrypt);
    expect(await contents(one)).toBe(ROW.toString());
    // A file of another transaction.
    await writeFile(join(path, '2.spill'), bytes);
    await expect(contents(two)).rejects.toMatchObject({ code: 'damaged' });
    await directory.close();
  });

  it('reads its own file, whatever has its name by now', async () => {
    const directory = new SpillDirectory(path, false);
    await directory.prepare();
    const file = directory.file(1);
    await file.write([ROW]);
    await rename(join(path, '1.spill'), join(path, 'away'));
    await writeFile(join(path, '1.spill'), 'other');
    expect(await contents(file)).toBe(ROW.toString());
    await rm(join(path, 'away'));
    await directory.close();
  });

  it('warns of a folder in memory', async () => {
    // Where there is no such folder, nothing is to be warned of either.
    const parent = existsSync('/dev/shm') ? '/dev/shm' : root;
    const folder = await mkdtemp(join(parent, 'spilling-'));
    try {
      const inMemory = (await statfs(folder)).type === 0x01021994;
      const warning = await new SpillDirectory(folder, false).prepare();
      expect(warning).toBe(
        inMemory
          ? 'streaming.spill.dir is on tmpfs, which is memory, so that writing transactions there frees none: name a folder on a disk'
          : null,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
