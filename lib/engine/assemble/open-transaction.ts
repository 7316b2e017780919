import type { Change } from '../model/change.js';
import type { Message } from '../model/message.js';
import type {
  BeginMessage,
  LogicalMessage,
  ReplicationMessage,
} from '../model/replication-message.js';
import { Arrival, type ArrivalPorts } from './arrival.js';
import { AssembledMessage } from './assembled-message.js';
import {
  DeleteChange,
  InsertChange,
  TruncateChange,
  UpdateChange,
} from './changes.js';

/** A message that changes rows. */
export type ChangeMessage = Extract<
  ReplicationMessage,
  { kind: 'insert' | 'update' | 'delete' | 'truncate' }
>;

/** A message that adds something to a transaction. */
export type ContentMessage = ChangeMessage | LogicalMessage;

/** What has arrived of a transaction. Changes and messages share one counter of ordinals. */
export class OpenTransaction {
  readonly messages: Message[] = [];
  #changes: Change[] = [];
  #changeBytes = 0;
  #messageBytes = 0;
  #ordinal = 0;
  #arrival: Arrival | null = null;

  constructor(readonly begin: BeginMessage) {}

  /** Changes that were not handed over. */
  get changes(): readonly Change[] {
    return this.#changes;
  }

  /** Payload bytes of all that is held here: what was handed over is no longer. */
  get bytes(): number {
    return this.#changeBytes + this.#messageBytes;
  }

  get messageBytes(): number {
    return this.#messageBytes;
  }

  get empty(): boolean {
    return this.#changes.length === 0 && this.messages.length === 0;
  }

  /** Who reads it while it arrives. */
  get arrival(): Arrival | null {
    return this.#arrival;
  }

  /** Lets its changes be read from now on. */
  handOver(ports: ArrivalPorts): Arrival {
    const arrival = new Arrival(this.#changes, this.#changeBytes, ports);
    this.#arrival = arrival;
    this.#changes = [];
    this.#changeBytes = 0;
    return arrival;
  }

  add(message: ContentMessage, bytes: number): void {
    if (message.kind === 'message') {
      this.#messageBytes += bytes;
      this.messages.push(new AssembledMessage(message, this.#ordinal++));
      return;
    }
    this.#addChanges(message);
    if (this.#arrival === null) this.#changeBytes += bytes;
    else this.#arrival.received(bytes);
  }

  #addChanges(message: ChangeMessage): void {
    const commitLsn = this.begin.finalLsn;
    switch (message.kind) {
      case 'insert': {
        const { relation, record } = message;
        this.#push(
          new InsertChange(this.#ordinal++, commitLsn, relation, record),
        );
        break;
      }
      case 'update': {
        const { relation, record, unchanged, old } = message;
        this.#push(
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
        this.#push(new DeleteChange(this.#ordinal++, commitLsn, relation, old));
        break;
      }
      case 'truncate': {
        const { relations, cascade, restartIdentity } = message;
        const together = relations.map(({ name }) => name);
        for (const relation of relations) {
          this.#push(
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
    }
  }

  #push(change: Change): void {
    if (this.#arrival === null) this.#changes.push(change);
    else this.#arrival.push(change);
  }
}
