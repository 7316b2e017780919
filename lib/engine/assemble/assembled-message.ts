import { formatLsn, type Lsn } from '../model/lsn.js';
import type { Message } from '../model/message.js';

/** A logical decoding message with its place in the transaction. */
export class AssembledMessage implements Message {
  constructor(
    readonly transactional: boolean,
    readonly lsn: Lsn,
    readonly prefix: string,
    readonly content: Buffer,
    readonly ordinal: number | null,
  ) {}

  /** Gives the position as text, because JSON has no bigint. */
  toJSON() {
    return {
      transactional: this.transactional,
      lsn: formatLsn(this.lsn),
      prefix: this.prefix,
      content: this.content,
      ordinal: this.ordinal,
    };
  }
}
