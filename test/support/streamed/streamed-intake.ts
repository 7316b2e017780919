import { setImmediate as nextTurn } from 'node:timers/promises';
import { changesOf } from '../changes-of.js';
import type { AssemblerOptions } from '../../../lib/engine/assemble/assembler.js';
import type { StreamedWork } from '../../../lib/engine/deliver/work.js';
import { type Deferred, deferred } from '../../../lib/engine/model/deferred.js';
import { PipelineIntake } from '../../../lib/engine/pipeline/intake.js';
import { Positions } from '../../../lib/engine/source/positions.js';
import type { TransactionFile } from '../../../lib/engine/streamed/streamed-transaction.js';
import { StreamedTransactions } from '../../../lib/engine/streamed/streamed-transactions.js';
import type { CatalogType } from '../../../lib/engine/values/catalog-types.js';
import { assembler, intakePorts, typeCatalog } from '../fed-intake.js';
import {
  beginFrame,
  commitFrame,
  relationFrame,
  streamCommitFrame,
  streamedFrame,
  streamStartFrame,
  streamStopFrame,
  typeFrame,
} from '../pgoutput-frames.js';
import { waitFor } from '../wait-for.js';

const ARRAY_OF_MOODS = 16_385;
export const TABLE = relationFrame({ oid: 1, columns: [{ name: 'v' }] });
export const MOODS = [
  typeFrame(ARRAY_OF_MOODS, 'public', '_mood'),
  relationFrame({
    oid: 2,
    table: 'moods',
    columns: [{ name: 'v', typeOid: ARRAY_OF_MOODS }],
  }),
];
export const CATALOG: readonly CatalogType[] = [
  {
    oid: String(ARRAY_OF_MOODS),
    kind: 'array',
    inner: '16384',
    delimiter: ',',
  },
  { oid: '16384', kind: 'other', inner: '0', delimiter: ',' },
];

export function part(
  xid: number,
  frames: readonly Buffer[],
  first = true,
  subxid = xid,
): Buffer[] {
  return [
    streamStartFrame(xid, first),
    ...frames.map((frame) => streamedFrame(subxid, frame)),
    streamStopFrame(),
  ];
}

export function plain(lsn: bigint, frames: readonly Buffer[]): Buffer[] {
  return [beginFrame(lsn, 900), ...frames, commitFrame(lsn, lsn + 5n)];
}

export function commit(xid: number, lsn: bigint): Buffer {
  return streamCommitFrame(xid, lsn, lsn + 5n);
}

/** What is written to disk at once, if anything is, and read by a test. */
export class OneFile implements TransactionFile {
  readonly written: Buffer[] = [];
  readonly read: () => AsyncGenerator<Buffer>;

  constructor(read?: (written: readonly Buffer[]) => AsyncGenerator<Buffer>) {
    this.read = () => (read ?? all)(this.written);
  }

  write(blocks: readonly Buffer[]): Promise<void> {
    this.written.push(...blocks);
    return Promise.resolve();
  }

  blocks(): AsyncGenerator<Buffer> {
    return this.read();
  }

  remove(): Promise<void> {
    return Promise.resolve();
  }
}

export async function* all(blocks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* blocks;
}

/** An intake of a connection that is sent transactions while they run. */
export class StreamedIntake {
  readonly pushed: StreamedWork[] = [];
  readonly failed: unknown[] = [];
  /** What the connection was told, in order. */
  readonly told: string[] = [];
  readonly catalog = deferred<readonly CatalogType[]>();
  readonly positions = new Positions(0n, false);
  readonly intake: PipelineIntake;
  /** Subtransactions that are asked about; whether any was rolled back is told by {@link answer}. */
  readonly asked: (readonly number[])[] = [];
  readonly answer = deferred<boolean>();
  /** Where the next that asks for room has to wait. */
  room: Deferred<void> | null = null;

  constructor(
    file: TransactionFile | null = null,
    options: Partial<AssemblerOptions> = {},
  ) {
    const streamed = new StreamedTransactions(
      { transactions: 10, bytes: file === null ? 1e9 : 2, bytesOnDisk: 1e9 },
      {
        fileOf: file && (() => file),
        hold: () => {},
        release: () => {},
        spilled: () => {},
        failed: (error) => this.failed.push(error),
      },
    );
    this.intake = new PipelineIntake(
      'exact',
      intakePorts({
        positions: this.positions,
        catalog: typeCatalog(() => {
          this.told.push('types');
          return this.catalog.promise;
        }),
        rolledBack: (subxids) => {
          this.asked.push(subxids);
          return this.answer.promise;
        },
        push: (work) => {
          this.pushed.push(work);
          this.told.push(work.kind);
        },
        arrived: () => this.told.push('arrived'),
        keepalive: () => this.told.push('keepalive'),
        replaying: (runs) => this.told.push(runs ? 'replaying' : 'replayed'),
        room: () => this.room?.promise ?? null,
        fail: (error) => this.failed.push(error),
      }),
      streamed,
    );
    this.intake.begin(assembler(options));
  }

  /** Values of the column `v`, by transaction. */
  get values(): unknown[] {
    return this.pushed.map((work) =>
      work.kind === 'transaction'
        ? changesOf(work.transaction).map((change) =>
            change.op === 'insert' ? change.record['v'] : change.op,
          )
        : work.kind,
    );
  }

  /** How often the event loop turned until a transaction was run through. */
  async turnsUntilReplayed(): Promise<number> {
    let turns = 0;
    for (; this.told.at(-1) !== 'replayed'; turns += 1) await nextTurn();
    return turns;
  }

  async toldLast(what: string): Promise<void> {
    await waitFor(() => this.told.at(-1) === what);
  }
}
