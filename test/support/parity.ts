import type { MessageHandler } from '../../lib/engine/deliver/sink.js';
import type { Change } from '../../lib/engine/model/change.js';
import type { Message } from '../../lib/engine/model/message.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import type {
  PipelineOptions,
  TypesOption,
} from '../../lib/engine/options/pipeline-options.js';
import type { Pipeline } from '../../lib/engine/pipeline.js';
import { capture } from './capture.js';
import { CAPTURED } from './parity-fixture.js';
import type { TestDatabase } from './test-database.js';

/** A transaction whose changes were read. Positions, xids and times are those of one server, so they are compared too. */
export interface TakenTransaction extends Pick<
  Transaction,
  'xid' | 'commitLsn' | 'commitEndLsn' | 'commitTimeMicros' | 'messages'
> {
  readonly changes: readonly Change[];
}

/** A transaction, or a message outside one. */
export type Taken = TakenTransaction | Message;

/** A pipeline, and everything that it has delivered, in order. */
export interface Taking {
  readonly pipeline: Pipeline;
  readonly taken: readonly Taken[];
}

/** What is captured, by each of the decoders. */
const DECODERS = {
  pgoutput: {
    decoder: 'pgoutput',
    publication: ['changes', 'inserts'],
    messages: true,
  },
  wal2json: {
    decoder: 'wal2json',
    tables: CAPTURED,
    allowKeylessTables: true,
    messages: true,
  },
  pglogical: {
    decoder: 'pglogical',
    replicationSets: ['default', 'default_insert_only'],
  },
} as const satisfies Record<string, Partial<PipelineOptions>>;

/** One pipeline for each decoder. */
export type Takings = Readonly<Record<keyof typeof DECODERS, Taking>>;

export function takings(source: TestDatabase, types: TypesOption): Takings {
  return {
    pgoutput: taking(source, types, DECODERS.pgoutput),
    wal2json: taking(source, types, DECODERS.wal2json),
    pglogical: taking(source, types, DECODERS.pglogical),
  };
}

function taking(
  source: TestDatabase,
  types: TypesOption,
  options: (typeof DECODERS)[keyof typeof DECODERS],
): Taking {
  const taken: Taken[] = [];
  const message: MessageHandler = {
    takes: () => true,
    async handle(content) {
      taken.push(content);
    },
  };
  const { pipeline } = capture(source, {
    target: source,
    checkpoint: { kind: 'reader', read: async () => null },
    slotName: `${options.decoder}_${source.name}`,
    types,
    ...options,
    async apply(transaction) {
      taken.push(await take(transaction));
    },
    ...('messages' in options && { sink: { message } }),
  });
  return { pipeline, taken };
}

async function take(transaction: Transaction): Promise<TakenTransaction> {
  const changes: Change[] = [];
  for await (const change of transaction.changes) changes.push(change);
  const { xid, commitLsn, commitEndLsn, commitTimeMicros, messages } =
    transaction;
  return { xid, commitLsn, commitEndLsn, commitTimeMicros, messages, changes };
}

/** What is left when a plugin says of a truncation which table it was, and no more. */
export function withoutTruncateOptions(taken: readonly Taken[]): Taken[] {
  return taken.map((one) =>
    'changes' in one
      ? { ...one, changes: one.changes.map(withoutOptions) }
      : one,
  );
}

function withoutOptions(change: Change): Change {
  return change.op === 'truncate'
    ? {
        ...change,
        cascade: false,
        restartIdentity: false,
        together: [change.relation],
      }
    : change;
}

/** What is left when a plugin sends no messages. */
export function withoutMessages(taken: readonly Taken[]): Taken[] {
  return taken.flatMap((one) =>
    'changes' in one && one.changes.length > 0
      ? [
          {
            ...one,
            messages: [],
            changes: one.changes.map((change, ordinal) => ({
              ...change,
              ordinal,
            })),
          },
        ]
      : [],
  );
}
