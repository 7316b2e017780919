import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import {
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deferred } from '../model/deferred.js';
import { ChecksumSeal, CipherSeal } from './block-seal.js';
import { SpillFile, type OpenFile, type SpillFileParts } from './spill-file.js';

const NEW_FILE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
const SECRET = Buffer.from('the row of a customer');

describe('SpillFile', () => {
  let folder: string;
  let path: string;
  const opened: SpillFile[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spill-'));
    path = join(folder, '7.spill');
  });

  afterEach(async () => {
    await Promise.allSettled(opened.splice(0).map((file) => file.remove()));
    await rm(folder, { recursive: true });
  });

  function make(parts: Partial<SpillFileParts> = {}): SpillFile {
    const file = new SpillFile({
      xid: 7,
      path,
      seal: new ChecksumSeal(),
      open: (name) => open(name, NEW_FILE),
      onRemoved: () => undefined,
      ...parts,
    });
    opened.push(file);
    return file;
  }

  /** A file with which something is done another way. */
  function tampered(
    change: (file: OpenFile) => Partial<OpenFile>,
  ): SpillFileParts['open'] {
    return async (name) => {
      const file = await open(name, NEW_FILE);
      const whole: OpenFile = {
        writev: (parts, position) => file.writev(parts, position),
        read: (into, offset, length, position) =>
          file.read(into, offset, length, position),
        close: () => file.close(),
      };
      return { ...whole, ...change(whole) };
    };
  }

  async function contents(file: SpillFile): Promise<Buffer[]> {
    const blocks: Buffer[] = [];
    for await (const block of file.blocks()) blocks.push(block);
    return blocks;
  }

  it.each([new ChecksumSeal(), new CipherSeal()])(
    'gives back what was written, in order, whoever waited for what: $constructor.name',
    async (seal) => {
      const file = make({ seal });
      const blocks = Array.from({ length: 60 }, (_, i) =>
        randomBytes(i * 5_000),
      );
      await Promise.all([
        file.write(blocks.slice(0, 1)),
        file.write([]),
        file.write(blocks.slice(1, 40)),
        file.write(blocks.slice(40)),
      ]);
      const read = await contents(file);
      expect(read.length).toBe(60);
      for (const [i, block] of blocks.entries())
        expect(read[i]?.equals(block)).toBe(true);
      expect(file.bytes).toBe((await stat(path)).size);
      expect(file.bytes).toBe(
        blocks.reduce((sum, { length }) => sum + length, 0) +
          60 * seal.headerBytes,
      );
    },
  );

  it('is not there before something is written to it', async () => {
    const file = make();
    await file.write([]);
    expect(await contents(file)).toEqual([]);
    expect(file.bytes).toBe(0);
    await file.remove();
    expect(await readdir(folder)).toEqual([]);
  });

  it('waits with reading for writes that are running', async () => {
    const file = make();
    const writing = file.write([SECRET, SECRET]);
    expect(await contents(file)).toEqual([SECRET, SECRET]);
    await writing;
  });

  it('reads no further than it was asked to', async () => {
    let reads = 0;
    const file = make({
      open: tampered((real) => ({
        read: (...of) => {
          reads += 1;
          return real.read(...of);
        },
      })),
    });
    await file.write([SECRET, SECRET, SECRET]);
    const blocks = file.blocks();
    await blocks.next();
    expect(reads).toBe(1);
    await blocks.return();
    expect(reads).toBe(1);
  });

  it('goes on where the system has written or read only a part', async () => {
    const file = make({
      open: tampered((real) => ({
        writev: ([first], position) =>
          real.writev(first ? [first.subarray(0, 5)] : [], position),
        read: (into, offset, length, position) =>
          real.read(into, offset, Math.min(length, 3), position),
      })),
    });
    const blocks = [SECRET, Buffer.alloc(0), randomBytes(1_000)];
    await file.write(blocks);
    expect(await contents(file)).toEqual(blocks);
  });

  it('says by its name that the disk is full, then and ever after', async () => {
    const full = Object.assign(new Error('/dev/full'), { code: 'ENOSPC' });
    const file = make({
      open: existsSync('/dev/full')
        ? () => open('/dev/full', 'r+')
        : tampered(() => ({ writev: () => Promise.reject(full) })),
    });
    const faults = await Promise.allSettled<unknown>([
      file.write([SECRET]),
      file.write([SECRET]),
      contents(file),
    ]);
    for (const fault of faults)
      expect(fault).toMatchObject({
        status: 'rejected',
        reason: { name: 'SpillError', code: 'ENOSPC' },
      });
    expect(inspect(faults)).not.toContain(SECRET.toString());
    expect(inspect(faults)).not.toContain('/dev/full');
    expect(file.bytes).toBe(0);
  });

  it('takes nothing more once a write has failed, since nobody knows what is there', async () => {
    let writes = 0;
    const file = make({
      open: tampered((real) => ({
        writev: async (...of) => {
          writes += 1;
          if (writes === 2) throw Object.assign(new Error(), { code: 'EIO' });
          return real.writev(...of);
        },
      })),
    });
    await file.write([SECRET]);
    await expect(file.write([SECRET])).rejects.toMatchObject({ code: 'EIO' });
    await expect(file.write([SECRET])).rejects.toMatchObject({ code: 'EIO' });
    expect(writes).toBe(2);
    await expect(contents(file)).rejects.toMatchObject({ code: 'EIO' });
  });

  it('takes no file that is there already', async () => {
    await writeFile(path, 'of another one');
    const file = make();
    await expect(file.write([SECRET])).rejects.toMatchObject({
      code: 'EEXIST',
      message: 'writing a spill file failed: EEXIST',
    });
    await file.remove();
    expect(await readFile(path, 'utf8')).toBe('of another one');
  });

  it('finds out that the file was cut off, or changed', async () => {
    const file = make();
    await file.write([SECRET, SECRET]);
    await truncate(path, file.bytes - 1);
    const blocks = file.blocks();
    expect(await blocks.next()).toEqual({ done: false, value: SECRET });
    await expect(blocks.next()).rejects.toMatchObject({ code: 'truncated' });
    await writeFile(path, Buffer.alloc(file.bytes));
    await expect(contents(file)).rejects.toMatchObject({ code: 'damaged' });
  });

  it('notices that two blocks were exchanged', async () => {
    const file = make();
    await file.write([randomBytes(20), randomBytes(20)]);
    const bytes = await readFile(path);
    await writeFile(path, [
      bytes.subarray(bytes.length / 2),
      bytes.subarray(0, bytes.length / 2),
    ]);
    await expect(contents(file)).rejects.toMatchObject({ code: 'damaged' });
  });

  it('is removed once running writes have settled, and those behind them are left out', async () => {
    const gate = deferred<void>();
    let writes = 0;
    let removed = 0;
    const file = make({
      open: tampered((real) => ({
        writev: async (parts, position) => {
          writes += 1;
          await gate.promise;
          return real.writev(parts, position);
        },
      })),
      onRemoved: () => (removed += 1),
    });
    const writing = Promise.all([
      file.write([SECRET, SECRET]),
      file.write([SECRET]),
    ]);
    while (writes === 0) await new Promise(setImmediate);
    const removing = file.remove();
    expect(await readdir(folder)).toEqual(['7.spill']);
    gate.resolve();
    await Promise.all([writing, removing, file.remove()]);
    expect(writes).toBe(1);
    expect(removed).toBe(1);
    expect(await readdir(folder)).toEqual([]);
    await file.write([SECRET]);
    expect(await readdir(folder)).toEqual([]);
  });

  it('is removed although nothing could be written to it', async () => {
    const file = make({
      open: tampered(() => ({ writev: () => Promise.reject(new Error('no')) })),
    });
    await expect(file.write([SECRET])).rejects.toMatchObject({
      code: 'EUNKNOWN',
      message: 'writing a spill file failed: Error',
    });
    await file.remove();
    expect(await readdir(folder)).toEqual([]);
  });

  it('is as good as removed when somebody else has done that', async () => {
    const file = make();
    await file.write([SECRET]);
    await unlink(path);
    await file.remove();
  });

  it('says that it cannot be removed', async () => {
    const file = make();
    await file.write([SECRET]);
    await unlink(path);
    await rm(folder, { recursive: true });
    await writeFile(folder, '');
    await expect(file.remove()).rejects.toMatchObject({
      code: 'ENOTDIR',
      message: 'removing a spill file failed: ENOTDIR',
    });
  });

  it('is not read any more once it is removed', async () => {
    const file = make();
    await file.write([SECRET, SECRET]);
    const blocks = file.blocks();
    await blocks.next();
    await file.remove();
    await expect(blocks.next()).rejects.toMatchObject({ code: 'removed' });
    await expect(contents(file)).rejects.toMatchObject({ code: 'removed' });
  });
});
