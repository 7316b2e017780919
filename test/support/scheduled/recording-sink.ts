import { isDeepStrictEqual } from 'node:util';
import type { AttachedSink } from '../../../lib/engine/deliver/sink.js';
import type { CheckpointTable } from '../../../lib/engine/checkpoint/checkpoint-table.js';
import { formatLsn, type Lsn } from '../../../lib/engine/model/lsn.js';
import type { Message } from '../../../lib/engine/model/message.js';
import type { Transaction } from '../../../lib/engine/model/transaction.js';
import type { TestDatabase } from '../test-database.js';
import { type Content, readContent } from './content.js';
import type { RowMirror } from './row-mirror.js';
import type { Refusal } from './steps.js';

/** The error of a handler that was told to reject. */
export class RefusedError extends Error {}

/** Applies transactions to a mirror, and keeps what was delivered: each once, whatever comes again. */
export class RecordingSink {
  readonly delivered: Content[] = [];
  readonly messages: Message[] = [];
  /** What must not have happened. */
  readonly faults: string[] = [];
  #refusal: Refusal | null = null;
  #last: Lsn = 0n;
  #lastMessage: Lsn = 0n;
  /** What comes again is compared with it. */
  readonly #known = new Map<Lsn, Content>();

  /** @param checkpoints - `null` when the library keeps the checkpoint */
  constructor(
    private readonly mirror: RowMirror,
    private readonly target: TestDatabase,
    private readonly checkpoints: CheckpointTable | null,
  ) {}

  /** The next transaction is refused. */
  refuse(refusal: Refusal | null): void {
    this.#refusal = refusal;
  }

  /** Forgets what is durable: all of it. It must not come again. */
  forget(): void {
    this.delivered.length = 0;
    this.messages.length = 0;
    this.#known.clear();
    this.#refusal = null;
  }

  methods(batch: boolean): AttachedSink {
    return {
      name: 'RecordingSink',
      ...(this.checkpoints && {
        checkpoint: { kind: 'keeper', keeper: this.checkpoints },
      }),
      ...(batch
        ? { batch: (transactions) => this.#takeAll(transactions) }
        : { transaction: (transaction) => this.#takeAll([transaction]) }),
      message: {
        takes: () => true,
        handle: async (message) => this.#takeMessage(message),
      },
      schemaChange: async () => {},
    };
  }

  async #takeAll(transactions: readonly Transaction[]): Promise<void> {
    const contents: Content[] = [];
    for (const transaction of transactions)
      contents.push(
        await readContent(transaction, (changes) => this.#maybeRefuse(changes)),
      );
    const fresh = await this.#advance(transactions);
    for (const content of contents)
      if (fresh.has(content.commitLsn)) this.#apply(content);
    if (this.#refusal === 'applied') this.#reject();
  }

  /** Which of them are to be applied. */
  async #advance(
    transactions: readonly Transaction[],
  ): Promise<ReadonlySet<Lsn>> {
    const { checkpoints, target } = this;
    if (checkpoints === null)
      return new Set(transactions.map(({ commitLsn }) => commitLsn));
    const fresh = await checkpoints.advance(
      (sql, values) => target.query(sql, [...values]),
      transactions,
    );
    return new Set(fresh.map(({ commitLsn }) => commitLsn));
  }

  #apply(content: Content): void {
    const { commitLsn } = content;
    if (commitLsn <= this.#last) return this.#takeAgain(content);
    this.#last = commitLsn;
    this.#known.set(commitLsn, content);
    this.delivered.push(content);
    try {
      for (const change of content.changes) this.mirror.apply(change);
    } catch (error) {
      this.faults.push(`${formatLsn(commitLsn)}: ${String(error)}`);
    }
  }

  /** Where the library keeps the checkpoint, what was delivered before may come again. */
  #takeAgain(content: Content): void {
    const at = formatLsn(content.commitLsn);
    const before = this.#known.get(content.commitLsn);
    if (this.checkpoints !== null)
      this.faults.push(`the transaction at ${at} comes once more`);
    else if (before === undefined)
      this.faults.push(`the transaction at ${at} comes behind later ones`);
    else if (!isDeepStrictEqual(before, content))
      this.faults.push(`the transaction at ${at} comes again as another`);
  }

  #takeMessage(message: Message): void {
    if (message.lsn <= this.#lastMessage) return;
    this.#lastMessage = message.lsn;
    this.messages.push({ ...message });
  }

  #maybeRefuse(changes: number): void {
    const refusal = this.#refusal;
    if (typeof refusal === 'number' && changes >= refusal) this.#reject();
  }

  #reject(): never {
    this.#refusal = null;
    throw new RefusedError('as told');
  }
}
