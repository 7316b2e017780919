import type { ChunkWork } from '../../deliver/work.js';
import type { AnySnapshotRow, SnapshotContext } from '../../model/snapshot.js';
import type { BackfillPlan } from './backfill-plan.js';
import type { ReadyChunk } from './chunk.js';
import type { CopyableTable } from './discovery.js';
import {
  bytesOfStep,
  type ProgressStep,
  SinkProgress,
} from './sink-progress.js';

/** Where the calls of a backfill go. */
export interface HandOverPorts {
  readonly pipeline: string;
  readonly slotName: string;
  deliver(work: ChunkWork): void;
}

/** Hands what was copied over to the sink, each time with the progress that it stores with it. */
export class HandOver {
  readonly #plan: BackfillPlan;
  readonly #ports: HandOverPorts;
  readonly #progress: SinkProgress;

  /** @param plan - of which nothing was handed over yet */
  constructor(plan: BackfillPlan, ports: HandOverPorts) {
    this.#plan = plan;
    this.#ports = ports;
    this.#progress = new SinkProgress(plan.progress);
  }

  /** The sink has to remove what it has of the table. */
  clearing({ table }: CopyableTable, taken: () => void): void {
    this.#deliver([], { relation: table.name, firstForTable: true }, taken);
  }

  rows(
    { table, maker }: CopyableTable,
    { rows, fills }: ReadyChunk,
    firstForTable: boolean,
    taken: (count: number) => void,
  ): void {
    const made = [
      ...rows.map((row) => maker.whole(row)),
      ...fills.map((fill) => maker.fill(fill)),
    ];
    this.#deliver(made, { relation: table.name, firstForTable }, () =>
      taken(made.length),
    );
  }

  /** The progress alone. It comes with what the stream brings, so it counts as that does. */
  progress(): void {
    this.#deliver([], {}, () => {}, bytesOfStep);
  }

  complete(taken: () => void): void {
    this.#deliver([], { complete: true }, taken);
  }

  #deliver(
    rows: readonly AnySnapshotRow[],
    context: Partial<SnapshotContext>,
    taken: () => void,
    bytesOf: (step: ProgressStep) => number = () => 0,
  ): void {
    const { pipeline, slotName } = this.#ports;
    const { floor } = this.#plan;
    const step = this.#plan.takeStep();
    this.#ports.deliver({
      kind: 'chunk',
      rows,
      bytes: bytesOf(step),
      begin: () => ({
        pipeline,
        slotName,
        mode: 'incremental',
        relation: '',
        snapshotLsn: floor,
        firstForTable: false,
        complete: false,
        ...context,
        progress: this.#progress.take(step),
      }),
      taken,
    });
  }
}
