import type { Client } from 'pg';
import { PgoutputDecoder } from '../../../lib/engine/decode/pgoutput/pgoutput-decoder.js';
import type { Change } from '../../../lib/engine/model/change.js';
import type { Message } from '../../../lib/engine/model/message.js';
import type { Relation } from '../../../lib/engine/model/relation.js';
import type {
  BeginMessage,
  ReplicationMessage,
} from '../../../lib/engine/model/replication-message.js';
import type { TypesOption } from '../../../lib/engine/options/pipeline-options.js';
import type { TextRow } from '../../../lib/engine/server/session.js';
import { readTypes } from '../../../lib/engine/server/type-catalog.js';
import { TypeTable } from '../../../lib/engine/values/type-table.js';
import type { Content } from './content.js';

/** What was committed, and messages outside transactions. */
export interface Committed {
  readonly transactions: readonly Content[];
  readonly messages: readonly Message[];
}

/** Reads what is committed by another slot, without streaming, and puts it together in a way of its own. */
export class PlainReader {
  constructor(
    private readonly client: Client,
    private readonly slot: string,
    private readonly types: TypesOption,
  ) {}

  async create(): Promise<void> {
    await this.client.query(
      `select pg_create_logical_replication_slot($1, 'pgoutput')`,
      [this.slot],
    );
  }

  /** What was committed since the last time. */
  async read(): Promise<Committed> {
    const { rows } = await this.client.query<{ data: Buffer }>(
      `select data from pg_logical_slot_get_binary_changes($1, null, null, 'proto_version', '1', 'publication_names', 'p', 'messages', 'true')`,
      [this.slot],
    );
    const types = new TypeTable(this.types);
    const decoder = new PgoutputDecoder(types);
    const reading = new Reading();
    for (const { data } of rows) {
      let decoded = decoder.decode(data);
      if (decoded.kind === 'types-needed') {
        types.learn(decoded.oids, await this.#readTypes(decoded.oids));
        decoded = decoder.decode(data);
      }
      if (decoded.kind === 'types-needed' || decoded.kind === 'fault')
        throw new Error(`The plain stream cannot be read: ${decoded.kind}.`);
      reading.take(decoded);
    }
    return reading;
  }

  #readTypes(oids: readonly number[]): ReturnType<typeof readTypes> {
    const query = async (
      text: string,
      values: readonly unknown[] = [],
    ): Promise<TextRow[]> =>
      (await this.client.query<TextRow>(text, [...values])).rows;
    return readTypes({ query, queryPatiently: query }, oids);
  }
}

class Reading implements Committed {
  readonly transactions: Content[] = [];
  readonly messages: Message[] = [];
  #begin: BeginMessage | null = null;
  #changes: Change[] = [];
  #messages: Message[] = [];
  #ordinal = 0;

  take(message: ReplicationMessage): void {
    switch (message.kind) {
      case 'begin':
        this.#begin = message;
        this.#changes = [];
        this.#messages = [];
        this.#ordinal = 0;
        return;
      case 'commit': {
        const { xid, commitTimeMicros } = this.#begun;
        const { commitLsn, endLsn: commitEndLsn } = message;
        this.transactions.push({
          xid,
          commitLsn,
          commitEndLsn,
          commitTimeMicros,
          changes: this.#changes,
          messages: this.#messages,
        });
        return;
      }
      case 'message': {
        const { transactional, lsn, prefix, content } = message;
        const ordinal = transactional ? this.#ordinal++ : null;
        const into = transactional ? this.#messages : this.messages;
        into.push({ transactional, lsn, prefix, content, ordinal });
        return;
      }
      case 'insert': {
        const { record } = message;
        this.#changes.push({
          op: 'insert',
          ...this.#common(message.relation),
          record,
        });
        return;
      }
      case 'update': {
        const { record, unchanged, old } = message;
        this.#changes.push({
          op: 'update',
          ...this.#common(message.relation),
          record,
          unchanged,
          old,
        });
        return;
      }
      case 'delete': {
        const { old } = message;
        this.#changes.push({
          op: 'delete',
          ...this.#common(message.relation),
          old,
        });
        return;
      }
      case 'truncate': {
        const { relations, cascade, restartIdentity } = message;
        const together = relations.map(({ name }) => name);
        for (const relation of relations)
          this.#changes.push({
            op: 'truncate',
            ...this.#common(relation),
            cascade,
            restartIdentity,
            together,
          });
        return;
      }
      case 'relation':
      case 'aside':
      case 'type':
      case 'origin':
      case 'abort':
    }
  }

  get #begun(): BeginMessage {
    if (this.#begin === null) throw new Error('No transaction has begun.');
    return this.#begin;
  }

  #common({ name, schema, table, columns }: Relation) {
    const commitLsn = this.#begun.finalLsn;
    const ordinal = this.#ordinal++;
    return { relation: name, schema, table, ordinal, commitLsn, columns };
  }
}
