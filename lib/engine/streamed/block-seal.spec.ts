import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChecksumSeal, CipherSeal, type BlockSeal } from './block-seal.js';

const PLACE = { xid: 4_294_967_295, number: 3 };
const SECRET = 'the row of a customer';

describe.each<[string, () => BlockSeal]>([
  ['ChecksumSeal', () => new ChecksumSeal()],
  ['CipherSeal', () => new CipherSeal()],
])('%s', (_, make) => {
  async function sealed(seal: BlockSeal, block: Buffer): Promise<Buffer> {
    return Buffer.concat(await seal.seal(block, PLACE));
  }

  it('gives back what it was given, and leaves that alone', async () => {
    const seal = make();
    for (const length of [0, 1, 1000, 2 ** 18, 2 ** 20, 2 ** 20 + 1, 3e6]) {
      const block = randomBytes(length);
      const copy = Buffer.from(block);
      const written = await sealed(seal, block);
      expect(written.length).toBe(length + seal.headerBytes);
      expect(written.readUInt32BE(0)).toBe(length);
      expect((await seal.open(written, PLACE)).equals(copy)).toBe(true);
      expect(block.equals(copy)).toBe(true);
    }
  });

  it('refuses a block of which a single bit is another one, without a word of it', async () => {
    const seal = make();
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc.nat(),
        async (bytes, bit) => {
          const written = await sealed(
            seal,
            Buffer.concat([Buffer.from(SECRET), bytes]),
          );
          const at = (bit >> 3) % written.length;
          written[at] = (written[at] ?? 0) ^ (1 << (bit & 7));
          const error: unknown = await seal
            .open(written, PLACE)
            .catch((fault: unknown) => fault);
          expect(error).toMatchObject({ name: 'SpillError', code: 'damaged' });
          expect(inspect(error)).not.toContain(SECRET);
        },
      ),
    );
  });

  it('refuses a block that was cut off, or has something behind it', async () => {
    const seal = make();
    const written = await sealed(seal, Buffer.from(SECRET));
    for (let length = 0; length < written.length; length += 1)
      await expect(
        seal.open(Buffer.from(written.subarray(0, length)), PLACE),
      ).rejects.toMatchObject({ code: 'damaged' });
    await expect(
      seal.open(Buffer.concat([written, Buffer.alloc(1)]), PLACE),
    ).rejects.toMatchObject({ code: 'damaged' });
  });

  it('refuses a block of another place, and one of nothing but zeros', async () => {
    const seal = make();
    const written = await sealed(seal, Buffer.from(SECRET));
    for (const place of [
      { ...PLACE, xid: 7 },
      { ...PLACE, number: 2 },
    ])
      await expect(
        seal.open(Buffer.from(written), place),
      ).rejects.toMatchObject({ code: 'damaged' });
    await expect(
      seal.open(Buffer.alloc(seal.headerBytes), PLACE),
    ).rejects.toMatchObject({ code: 'damaged' });
  });

  it('lets others have their turn while it works on a large row', async () => {
    const seal = make();
    let turns = 0;
    let done = false;
    const turn = (): void => {
      turns += 1;
      if (!done) setImmediate(turn);
    };
    setImmediate(turn);
    const written = await sealed(seal, Buffer.alloc(32 * 2 ** 20));
    expect(turns).toBeGreaterThan(28);
    turns = 0;
    await seal.open(written, PLACE);
    expect(turns).toBeGreaterThan(28);
    done = true;
  });
});

describe('CipherSeal', () => {
  const block = Buffer.from(SECRET.repeat(10));

  it('shows nothing of a block, and never seals one twice alike', async () => {
    const seal = new CipherSeal();
    const written = new Set<string>();
    const nonces = new Set<string>();
    for (let i = 0; i < 300; i += 1) {
      const [header, body] = await seal.seal(block, PLACE);
      expect(body?.includes(SECRET)).toBe(false);
      written.add(body?.toString('hex') ?? '');
      nonces.add(header?.subarray(4, 16).toString('hex') ?? '');
    }
    expect(written.size).toBe(300);
    expect(nonces.size).toBe(300);
  });

  it('has a key of its own in each instance, which it does not show', async () => {
    const seal = new CipherSeal();
    const written = Buffer.concat(await seal.seal(block, PLACE));
    await expect(
      new CipherSeal().open(Buffer.from(written), PLACE),
    ).rejects.toMatchObject({ code: 'damaged' });
    expect(await seal.open(written, PLACE)).toEqual(block);
    expect(inspect(seal, { depth: 9, showHidden: true })).toMatch(
      /^CipherSeal \{\s*headerBytes: 32\s*\}$/,
    );
  });
});
