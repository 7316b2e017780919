import type { ChunkWork } from '../../deliver/work.js';
import type { AnySnapshotRow, SnapshotContext } from '../../model/snapshot.js';
import type { BackfillPlan } from './backfill-plan.js';
import type { ReadyChunk } from './chunk.js';
import type { CopyableTable } from './discovery.js';

/** Where the calls of a backfill go. */
export interface HandOverPorts {
  readonly pipeline: string;
  readonly slotName: string;
  deliver(work: ChunkWork): void;
}

/** Hands what was copied over to the sink, each time with the progress that it stores with it. */
export class HandOver {
  constructor(
    private readonly plan: BackfillPlan,
    private readonly ports: HandOverPorts,
  ) {}

  /** The sink has to remove what it has of the table. */
  clearing({ table }: CopyableTable, taken: () => void): void {
    this.#deliver([], 0, { relation: table.name, firstForTable: true }, taken);
  }

  rows(
    { table, maker }: CopyableTable,
    { rows, fills, chunk }: ReadyChunk,
    firstForTable: boolean,
    taken: (count: number) => void,
  ): void {
    const made = [
      ...rows.map((row) => maker.whole(row)),
      ...fills.map((fill) => maker.fill(fill)),
    ];
    this.#deliver(
      made,
      chunk.bytes,
      { relation: table.name, firstForTable },
      () => taken(made.length),
    );
  }

  /** The progress alone. */
  progress(): void {
    this.#deliver([], 0, {}, () => {});
  }

  complete(taken: () => void): void {
    this.#deliver([], 0, { complete: true }, taken);
  }

  #deliver(
    rows: readonly AnySnapshotRow[],
    bytes: number,
    context: Partial<SnapshotContext>,
    taken: () => void,
  ): void {
    const { pipeline, slotName } = this.ports;
    this.ports.deliver({
      kind: 'chunk',
      rows,
      bytes,
      context: {
        pipeline,
        slotName,
        mode: 'incremental',
        relation: '',
        snapshotLsn: this.plan.floor,
        firstForTable: false,
        complete: false,
        ...context,
        progress: this.plan.token,
      },
      taken,
    });
  }
}
