import type { ChunkWork } from '../deliver/work.js';
import type { CheckpointPosition } from '../server/checkpoint-reading.js';
import type { StreamPlan } from '../server/connect-chain.js';
import type { Backfill } from '../snapshot/incremental/backfill.js';
import type { StreamWatch } from '../snapshot/incremental/stream-watch.js';
import { type IncrementalPorts, openBackfill } from './incremental-snapshot.js';
import { PipelineStateError } from './state-error.js';
import type { ConnectionSubject } from './subject.js';

/** The copy beside the stream of one connection, from before its first transaction to its end. */
export class CopyBesideStream {
  readonly #subject: ConnectionSubject;
  readonly #ports: IncrementalPorts;
  /** `null` when nothing is ever copied beside the stream. */
  #backfill: Backfill | null = null;
  /** Calls of the sink that come before the first transaction. */
  #early: ChunkWork[] | null = [];

  constructor(subject: ConnectionSubject, ports: IncrementalPorts) {
    this.#subject = subject;
    this.#ports = ports;
  }

  /**
   * Finds out what there is to copy, unless the connection ends before.
   *
   * @param ended - rejects when the connection has ended
   */
  async prepare(
    plan: StreamPlan,
    position: CheckpointPosition,
    ended: Promise<never>,
  ): Promise<void> {
    const opening = openBackfill(this.#subject, plan, position, {
      ...this.#ports,
      deliver: (work) => this.#deliver(work),
    });
    try {
      this.#backfill = await Promise.race([opening, ended]);
    } catch (error) {
      opening.then(
        (backfill) => backfill?.stop(),
        () => {},
      );
      throw error;
    }
  }

  /** Begins to hand over and to read. To be called before the first transaction is handed over. */
  begin(): void {
    for (const work of this.#early ?? []) this.#ports.deliver(work);
    this.#early = null;
    this.#backfill?.start();
  }

  /** Has to be told everything that the stream brings; `undefined` when nobody is. */
  get watch(): StreamWatch | undefined {
    return this.#backfill?.watch;
  }

  /**
   * Copies tables that exist already; see {@link Backfill.add}.
   *
   * @throws {PipelineStateError} when nothing is ever copied beside the stream
   */
  async add(tables: readonly string[], begun: Set<string>): Promise<void> {
    if (this.#backfill === null)
      throw new PipelineStateError(
        `Pipeline "${this.#subject.pipeline}" copies no tables beside the stream: it needs the option snapshot, and a checkpoint that stores progress.`,
      );
    await this.#backfill.add(tables, begun);
  }

  /** Ends reading. Never rejects. */
  async stop(): Promise<void> {
    await this.#backfill?.stop();
  }

  #deliver(work: ChunkWork): void {
    if (this.#early === null) this.#ports.deliver(work);
    else this.#early.push(work);
  }
}
