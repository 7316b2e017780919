import type { ReplicationMessage } from '../model/replication-message.js';
import type { Change } from '../model/change.js';
import type { Lsn } from '../model/lsn.js';
import type { Message } from '../model/message.js';
import { AssembledMessage } from './assembled-message.js';
import {
  DeleteChange,
  InsertChange,
  TruncateChange,
  UpdateChange,
} from './changes.js';

/** A message that adds something to a transaction. */
export type ContentMessage = Extract<
  ReplicationMessage,
  { kind: 'insert' | 'update' | 'delete' | 'truncate' | 'message' }
>;

/** What has arrived of a transaction. Changes and messages share one counter of ordinals. */
export class OpenTransaction {
  readonly changes: Change[] = [];
  readonly messages: Message[] = [];
  #bytes = 0;
  #ordinal = 0;

  constructor(
    readonly commitLsn: Lsn,
    readonly xid: number,
  ) {}

  /** Payload bytes of all that was added. */
  get bytes(): number {
    return this.#bytes;
  }

  get empty(): boolean {
    return this.changes.length === 0 && this.messages.length === 0;
  }

  add(message: ContentMessage, bytes: number): void {
    this.#bytes += bytes;
    const { commitLsn } = this;
    switch (message.kind) {
      case 'insert': {
        const { relation, record } = message;
        this.changes.push(
          new InsertChange(this.#ordinal++, commitLsn, relation, record),
        );
        break;
      }
      case 'update': {
        const { relation, record, unchanged, old } = message;
        this.changes.push(
          new UpdateChange(
            this.#ordinal++,
            commitLsn,
            relation,
            record,
            unchanged,
            old,
          ),
        );
        break;
      }
      case 'delete': {
        const { relation, old } = message;
        this.changes.push(
          new DeleteChange(this.#ordinal++, commitLsn, relation, old),
        );
        break;
      }
      case 'truncate': {
        const { relations, cascade, restartIdentity } = message;
        const together = relations.map(({ name }) => name);
        for (const relation of relations) {
          this.changes.push(
            new TruncateChange(
              this.#ordinal++,
              commitLsn,
              relation,
              cascade,
              restartIdentity,
              together,
            ),
          );
        }
        break;
      }
      case 'message': {
        const { transactional, lsn, prefix, content } = message;
        this.messages.push(
          new AssembledMessage(
            transactional,
            lsn,
            prefix,
            content,
            this.#ordinal++,
          ),
        );
        break;
      }
    }
  }
}
