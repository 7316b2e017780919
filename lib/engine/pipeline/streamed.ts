import type { ConnectionSubject } from './subject.js';
import type { StreamPlan } from '../server/connect-chain.js';
import { SpillDirectory, spillPath } from '../streamed/spill-directory.js';
import { type RoomPorts, spillFailed } from '../streamed/streamed-room.js';
import { StreamedTransactions } from '../streamed/streamed-transactions.js';

/** Transactions that are kept while they run, and where: of one connection. */
export class Streamed {
  private constructor(
    readonly transactions: StreamedTransactions,
    private readonly directory: SpillDirectory | null,
    private readonly warning: (message: string) => void,
  ) {}

  /** `null` when the server is not asked for transactions that are still running. */
  static create(
    subject: ConnectionSubject,
    { context, databaseOid }: StreamPlan,
    ports: Pick<RoomPorts, 'hold' | 'release' | 'failed'>,
  ): Streamed | null {
    const { streaming, slotName, maxInflightBytes } = subject.options;
    if (streaming === null) return null;
    const { spill } = streaming;
    const { systemIdentifier } = context;
    const directory =
      spill === null || databaseOid === null
        ? null
        : new SpillDirectory(
            spillPath(spill.dir, { systemIdentifier, databaseOid, slotName }),
            spill.encrypt,
          );
    const transactions = new StreamedTransactions(
      {
        transactions: streaming.maxConcurrentTxns,
        bytes: maxInflightBytes,
        bytesOnDisk: spill?.maxSpillBytes ?? 0,
      },
      {
        ...ports,
        fileOf: directory && ((xid) => directory.file(xid)),
        spilled: (xid, bytes) => subject.tell('spilled', { xid, bytes }),
      },
    );
    return new Streamed(transactions, directory, (message) =>
      subject.warning(message),
    );
  }

  /** Makes room on disk. Only while the slot is held. */
  async prepare(): Promise<void> {
    try {
      const warning = await this.directory?.prepare();
      if (warning) this.warning(warning);
    } catch (error) {
      throw spillFailed(error);
    }
  }

  /** Lets go of everything, in memory and on disk. */
  async close(): Promise<void> {
    this.transactions.clear();
    try {
      await this.directory?.close();
    } catch (error) {
      // The next connection sweeps the folder, and halts when it cannot.
      this.warning(spillFailed(error).message);
    }
  }
}
