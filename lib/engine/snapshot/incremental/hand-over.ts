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

/** What differs between calls. */
interface Content {
  readonly make: () => readonly AnySnapshotRow[];
  /** What the call counts of what the stream has brought. */
  readonly bytesOf: (step: ProgressStep) => number;
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
    this.#deliver({ relation: table.name, firstForTable: true }, taken);
  }

  rows(
    { table, maker }: CopyableTable,
    { rows, fills }: ReadyChunk,
    firstForTable: boolean,
    taken: (count: number) => void,
  ): void {
    const count = rows.length + fills.length;
    this.#deliver({ relation: table.name, firstForTable }, () => taken(count), {
      make: () => [
        ...Array.from(rows, (row) => maker.whole(row)),
        ...fills.map((fill) => maker.fill(fill)),
      ],
    });
  }

  /** The progress alone. It comes with what the stream brings, so it counts as that does. */
  progress(): void {
    this.#deliver({}, () => {}, { bytesOf: bytesOfStep });
  }

  complete(taken: () => void): void {
    this.#deliver({ complete: true }, taken);
  }

  #deliver(
    context: Partial<SnapshotContext>,
    taken: () => void,
    { make = () => [], bytesOf = () => 0 }: Partial<Content> = {},
  ): void {
    const { pipeline, slotName } = this.#ports;
    const { floor } = this.#plan;
    const step = this.#plan.takeStep();
    this.#ports.deliver({
      kind: 'chunk',
      bytes: bytesOf(step),
      begin: () => ({
        rows: make(),
        context: {
          pipeline,
          slotName,
          mode: 'incremental',
          relation: '',
          snapshotLsn: floor,
          firstForTable: false,
          complete: false,
          ...context,
          progress: this.#progress.take(step),
        },
      }),
      taken,
    });
  }
}
