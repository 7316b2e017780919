import type { HaltError } from '../../../lib/engine/model/halt.js';
import { FrameCursor } from '../../../lib/engine/streamed/frame-log.js';
import type { StreamedTransaction } from '../../../lib/engine/streamed/streamed-transaction.js';
import {
  type StreamedLimits,
  StreamedTransactions,
  type Taken,
} from '../../../lib/engine/streamed/streamed-transactions.js';
import {
  insertFrame,
  streamCommitFrame,
  streamedFrame,
  streamStartFrame,
  streamStopFrame,
} from '../pgoutput-frames.js';
import { SpillFilesInMemory } from '../spill-file-in-memory.js';

/** Before the text of a row of one column. */
const ROW_HEADER = 13;

/** Transactions that run, as one connection keeps them. */
export class Keeping {
  readonly files = new SpillFilesInMemory();
  readonly halts: HaltError[] = [];
  readonly told: string[] = [];
  readonly transactions: StreamedTransactions;

  constructor(limits: Partial<StreamedLimits> = {}, spills = true) {
    this.transactions = new StreamedTransactions(
      { transactions: 10, bytes: 1e9, bytesOnDisk: 1e9, ...limits },
      {
        fileOf: spills ? this.files.fileOf : null,
        hold: () => this.told.push('hold'),
        release: () => this.told.push('release'),
        spilled: (xid, bytes) => this.told.push(`spilled ${xid} ${bytes}`),
        failed: (halt) => this.halts.push(halt),
      },
    );
  }

  /** Takes payloads as from a socket, and gives what became of the last. */
  take(...payloads: readonly Buffer[]): Taken {
    let taken: Taken = { kind: 'plain' };
    for (const payload of payloads) {
      const bytes = Buffer.concat([Buffer.alloc(5), payload, Buffer.alloc(9)]);
      taken = this.transactions.take(bytes, 5, 5 + payload.length);
      bytes.fill(0);
    }
    return taken;
  }

  /** A part of a transaction: rows, each of a subtransaction. */
  part(
    xid: number,
    rows: readonly (readonly [subxid: number, text: string])[],
    first = false,
  ): void {
    this.take(
      streamStartFrame(xid, first),
      ...rows.map(([subxid, text]) =>
        streamedFrame(subxid, insertFrame(1, [text])),
      ),
      streamStopFrame(),
    );
  }

  commit(xid: number): StreamedTransaction {
    const taken = this.take(streamCommitFrame(xid, 10n, 20n));
    if (taken.kind !== 'committed') throw new Error(`It is ${taken.kind}.`);
    return taken.transaction;
  }

  /** Texts of the rows of a transaction that has committed. */
  async textsOf(transaction: StreamedTransaction): Promise<string[]> {
    const texts: string[] = [];
    for await (const block of transaction.blocks()) {
      const frame = new FrameCursor(block);
      while (frame.next()) {
        if (transaction.isAborted(frame.subxid)) continue;
        texts.push(
          block.subarray(frame.start + ROW_HEADER, frame.end).toString(),
        );
      }
    }
    this.transactions.settle(transaction);
    return texts;
  }
}
