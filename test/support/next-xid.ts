import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Client } from 'pg';
import type { PostgresServer } from './postgres-server.js';

/** Transactions of one page of pg_xact: with the first of a page the server needs no page that is not there. */
const PAGE_XIDS = 32_768;
/** No server lets an id get 2^31 ahead of the oldest row. */
const STEP = 2_000_000_000n;
const EPOCH = 2n ** 32n;
/** Where pg_control has the last checkpoint; before are things that never change. */
const CHECKPOINT_AT = 40;
/** In whatever version. */
const MOST_CONTENT_BYTES = 512;

/**
 * Has a server go on, after a restart, shortly before the transaction ids of 32 bits are used up; what `pg_resetwal` does. There must be no
 * rows but those of its own catalogs.
 *
 * @returns the next transaction id
 */
export async function nearEndOfXids(server: PostgresServer): Promise<bigint> {
  const last = EPOCH - BigInt(PAGE_XIDS);
  for (let next = await nextXid(server); next < last;) {
    await freeze(server);
    const wanted = next + STEP < last ? next + STEP : last;
    next = wanted - (wanted % BigInt(PAGE_XIDS));
    await setNextXid(server, next);
  }
  return nextXid(server);
}

/** The 64 bits of the next transaction id. */
async function nextXid(server: PostgresServer): Promise<bigint> {
  await server.query('checkpoint');
  const [row] = await server.query<{ next_xid: string }>(
    'select next_xid from pg_control_checkpoint()',
  );
  const [epoch = '', xid = ''] = row?.next_xid.split(':') ?? [];
  return BigInt(epoch) * EPOCH + BigInt(xid);
}

/** Uses up transaction ids until these are left below 2^32. */
export async function useUpXids(
  server: PostgresServer,
  left: bigint,
): Promise<void> {
  const count = EPOCH - left - (await nextXid(server));
  // Each block is a transaction of its own within one.
  await server.query(
    `do $$ begin
       create temp table used(xid int) on commit drop;
       for i in 1..${count - 1n} loop
         begin insert into used values (i); exception when division_by_zero then end;
       end loop;
     end $$`,
  );
}

/** Without it, rows of the past would be rows of the future. */
async function freeze(server: PostgresServer): Promise<void> {
  await server.query('alter database template0 allow_connections true');
  for (const database of ['postgres', 'template1', 'template0']) {
    const client = new Client({ ...server.connection, database });
    await client.connect();
    await client.query('vacuum (freeze)');
    await client.end();
  }
}

/** Writes it into the control file, beside what the last checkpoint has left there. */
async function setNextXid(server: PostgresServer, next: bigint): Promise<void> {
  const before = await nextXid(server);
  await server.stop();
  const file = path.join(server.dataFolder, 'global', 'pg_control');
  const control = await readFile(file);
  const checksumAt = placeOfChecksum(control);
  control.writeBigUInt64LE(next, placeOfXid(control, before));
  control.writeUInt32LE(crc32c(control.subarray(0, checksumAt)), checksumAt);
  await writeFile(file, control);
  await server.startAgain();
}

/** The shutdown itself may have used some. */
function placeOfXid(control: Buffer, xid: bigint): number {
  for (let at = CHECKPOINT_AT; at < MOST_CONTENT_BYTES; at += 8) {
    const value = control.readBigUInt64LE(at);
    if (value >= xid && value < xid + 100n) return at;
  }
  throw new Error('The control file holds no transaction id.');
}

/** It is behind all that it covers. */
function placeOfChecksum(control: Buffer): number {
  for (let at = CHECKPOINT_AT; at < MOST_CONTENT_BYTES; at += 4)
    if (control.readUInt32LE(at) === crc32c(control.subarray(0, at))) return at;
  throw new Error('The control file holds no checksum.');
}

/** The checksum that PostgreSQL uses. */
function crc32c(bytes: Buffer): number {
  let crc = 0xffff_ffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++)
      crc = (crc >>> 1) ^ ((crc & 1) === 1 ? 0x82f6_3b78 : 0);
  }
  return (crc ^ 0xffff_ffff) >>> 0;
}
