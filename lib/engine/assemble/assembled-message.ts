import { formatLsn, type Lsn } from '../model/lsn.js';
import type { Message } from '../model/message.js';
import type { LogicalMessage } from '../model/replication-message.js';

/** A logical decoding message, with its place when it belongs to a transaction. */
export class AssembledMessage implements Message {
  readonly transactional: boolean;
  readonly lsn: Lsn;
  readonly prefix: string;
  readonly content: Buffer;

  constructor(
    { transactional, lsn, prefix, content }: LogicalMessage,
    readonly ordinal: number | null,
  ) {
    this.transactional = transactional;
    this.lsn = lsn;
    this.prefix = prefix;
    this.content = content;
  }

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
