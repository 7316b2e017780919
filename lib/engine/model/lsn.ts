/**
 * A position in the write-ahead log: an unsigned 64-bit number, so that `<` and `<=` are WAL order.
 *
 * @see {@link https://www.postgresql.org/docs/current/datatype-pg-lsn.html | pg_lsn Type}
 */
export type Lsn = bigint;

const LSN_TEXT = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/;

/** The text PostgreSQL prints for a position: two upper-case hexadecimal halves, such as `16/B374D848`. */
export function formatLsn(lsn: Lsn): string {
  const high = (lsn >> 32n).toString(16);
  const low = (lsn & 0xffff_ffffn).toString(16);
  return `${high}/${low}`.toUpperCase();
}

/** The position a text such as `16/B374D848` names, or `null` when it names none. Never throws. */
export function parseLsn(text: string): Lsn | null {
  const match = LSN_TEXT.exec(text);
  if (match === null) return null;
  return (BigInt(`0x${match[1]}`) << 32n) | BigInt(`0x${match[2]}`);
}

/**
 * Turns a boundary (consistent point, confirmed flush, any end position) into a watermark.
 *
 * A boundary says "everything that commits below is done": the transaction whose commit record starts
 * exactly there is still to come. A watermark says "this commit and all before are done". They differ by one.
 * This is the only arithmetic on positions in the project.
 */
export function watermarkBelow(boundary: Lsn): Lsn {
  return boundary === 0n ? 0n : boundary - 1n;
}
