import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  randomBytes,
  type KeyObject,
} from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { SpillError } from './spill-error.js';

/** Where a block belongs: another one in its place is refused. */
export interface BlockPlace {
  /** Of the transaction. */
  readonly xid: number;
  /** Blocks of the file before it. */
  readonly number: number;
}

/** How a block is written to a file and read from it. */
export interface BlockSeal {
  /** Bytes that come before the block. */
  readonly headerBytes: number;
  /** What is written, in parts. */
  seal(block: Buffer, place: BlockPlace): Promise<Buffer[]>;
  /**
   * The block of what was written, in the same memory.
   *
   * @throws {SpillError} `damaged` when it is not what was written in this place
   */
  open(sealed: Buffer, place: BlockPlace): Promise<Buffer>;
}

/** Of a block, worked on in one turn of the event loop. A row may have many more. */
const PIECE = 1024 * 1024;

const CHECKED_HEADER = 8;

/** Finds damage: `[u32 length][u32 crc32]`, then the block. The checksum is that of place, length and block. */
export class ChecksumSeal implements BlockSeal {
  readonly headerBytes = CHECKED_HEADER;

  async seal(block: Buffer, place: BlockPlace): Promise<Buffer[]> {
    const header = Buffer.alloc(CHECKED_HEADER);
    header.writeUInt32BE(block.length, 0);
    header.writeUInt32BE(await checksum(block, place), 4);
    return [header, block];
  }

  async open(sealed: Buffer, place: BlockPlace): Promise<Buffer> {
    const block = blockOf(sealed, CHECKED_HEADER, place);
    if (sealed.readUInt32BE(4) !== (await checksum(block, place)))
      throw damaged(place);
    return block;
  }
}

const CIPHER = 'aes-256-gcm';
const KEY = 32;
const NONCE = 12;
const TAG = 16;
const NONCE_AT = 4;
const TAG_AT = NONCE_AT + NONCE;
const ENCRYPTED_HEADER = TAG_AT + TAG;

/**
 * Encrypts with a key that exists nowhere else, so that a file is of no use once the process is gone: `[u32 length][nonce][tag]`, then the
 * block. Place and length are authenticated with it.
 */
export class CipherSeal implements BlockSeal {
  readonly headerBytes = ENCRYPTED_HEADER;
  readonly #key: KeyObject = createSecretKey(randomBytes(KEY));
  /** A nonce that came twice would reveal both blocks. */
  #nonces = 0n;

  async seal(block: Buffer, place: BlockPlace): Promise<Buffer[]> {
    const nonce = this.#nextNonce();
    const cipher = createCipheriv(CIPHER, this.#key, nonce, {
      authTagLength: TAG,
    });
    cipher.setAAD(placeBytes(block.length, place));
    const parts: Buffer[] = [];
    for await (const piece of piecesOf(block)) parts.push(cipher.update(piece));
    cipher.final();
    const header = Buffer.alloc(ENCRYPTED_HEADER);
    header.writeUInt32BE(block.length, 0);
    nonce.copy(header, NONCE_AT);
    cipher.getAuthTag().copy(header, TAG_AT);
    return [header, ...parts];
  }

  async open(sealed: Buffer, place: BlockPlace): Promise<Buffer> {
    const block = blockOf(sealed, ENCRYPTED_HEADER, place);
    const decipher = createDecipheriv(
      CIPHER,
      this.#key,
      sealed.subarray(NONCE_AT, TAG_AT),
      { authTagLength: TAG },
    );
    decipher.setAAD(placeBytes(block.length, place));
    decipher.setAuthTag(sealed.subarray(TAG_AT, ENCRYPTED_HEADER));
    for await (const piece of piecesOf(block))
      decipher.update(piece).copy(piece);
    try {
      decipher.final();
    } catch {
      throw damaged(place);
    }
    return block;
  }

  #nextNonce(): Buffer {
    const nonce = Buffer.alloc(NONCE);
    nonce.writeBigUInt64BE(this.#nonces, NONCE - 8);
    this.#nonces += 1n;
    return nonce;
  }
}

/** What comes behind the header, whose length has to be right. */
function blockOf(sealed: Buffer, headerBytes: number, place: BlockPlace) {
  if (
    sealed.length < headerBytes ||
    sealed.readUInt32BE(0) !== sealed.length - headerBytes
  )
    throw damaged(place);
  return sealed.subarray(headerBytes);
}

async function checksum(block: Buffer, place: BlockPlace): Promise<number> {
  let sum = crc32(placeBytes(block.length, place));
  for await (const piece of piecesOf(block)) sum = crc32(piece, sum);
  return sum;
}

function placeBytes(length: number, { xid, number }: BlockPlace): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt32BE(xid, 0);
  bytes.writeUInt32BE(number, 4);
  bytes.writeUInt32BE(length, 8);
  return bytes;
}

/** The pieces of a block, each in a turn of its own. */
async function* piecesOf(block: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < block.length; start += PIECE) {
    if (start > 0) await nextTurn();
    yield block.subarray(start, start + PIECE);
  }
}

function damaged({ xid, number }: BlockPlace): SpillError {
  return new SpillError(
    'damaged',
    `block ${number} of the spill file of transaction ${xid} is not what was written`,
  );
}
