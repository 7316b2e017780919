import { HaltError } from '../../model/halt.js';
import type { Lsn } from '../../model/lsn.js';
import type { LackingRows } from '../../model/snapshot-progress.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { SnapshotMeter } from '../../telemetry/snapshot-meter.js';
import type { BackfillPlan } from './backfill-plan.js';
import type { BackfillReading } from './backfill-reading.js';
import type { Chunk, ReadyChunk } from './chunk.js';
import type { ChunkWindow } from './chunk-window.js';
import type { CopyableTable } from './discovery.js';
import type { HandOver } from './hand-over.js';
import type { Part, PlannedTable } from './planned-table.js';
import { identityOfTable } from './row-identity.js';
import type { RowMessage } from './stream-watch.js';
import type { DiscardReason, WindowPorts } from './window-ports.js';

/** Whom the outcome of chunks concerns. */
export interface OutcomePorts {
  readonly plan: BackfillPlan;
  readonly handOver: HandOver;
  readonly meter: SnapshotMeter;
  readonly window: () => ChunkWindow;
  readonly reading: () => BackfillReading;
  copyable(table: PlannedTable): CopyableTable;
  /** The sink has taken the last of it. */
  copied(table: PlannedTable): void;
  failed(error: unknown): void;
}

/** Times that a table without a key is copied while it is written to. */
const MOST_ATTEMPTS = 3;

/** Does what follows from what a window makes of chunks: hands them over, or has them read once more. */
export class ChunkOutcomes implements Omit<WindowPorts, 'askPosition'> {
  readonly #ports: OutcomePorts;
  readonly #parts = new WeakMap<Chunk, Part>();
  /** Tables of which the last rows were handed over and not taken. */
  readonly #ending = new Set<PlannedTable>();
  /** Tables without a key of which the stream has brought nothing since the sink was told to remove what it has. */
  readonly #untouched = new Map<number, PlannedTable>();
  #ended = false;

  constructor(ports: OutcomePorts) {
    this.#ports = ports;
  }

  /** Nothing is handed over any more. */
  end(): void {
    this.#ended = true;
  }

  /** Hands over that the sink has to remove what it has of the table. */
  clear(planned: PlannedTable, taken: () => void): void {
    planned.state = { state: 'waiting' };
    planned.touched = false;
    if (planned.table.orderKey === null)
      this.#untouched.set(planned.table.oid, planned);
    this.#ports.handOver.clearing(this.#ports.copyable(planned), taken);
  }

  /** A chunk is about to be given to the window. */
  read(chunk: Chunk, part: Part): void {
    this.#parts.set(chunk, part);
  }

  /** Whether the last rows of the table were handed over and not taken. */
  isEnding(planned: PlannedTable): boolean {
    return this.#ending.has(planned);
  }

  /** The stream brings something. */
  touch(message: RowMessage): void {
    if (this.#untouched.size === 0) return;
    const relations =
      message.kind === 'truncate' ? message.relations : [message.relation];
    for (const { oid } of relations) {
      const planned = this.#untouched.get(oid);
      if (planned !== undefined) planned.touched = true;
      this.#untouched.delete(oid);
    }
  }

  ready(ready: ReadyChunk): void {
    const { plan, meter, handOver } = this.#ports;
    const { chunk } = ready;
    const planned = plan.find(chunk.table.oid);
    const part = this.#parts.get(chunk);
    if (this.#ended || planned === null || part === undefined) return;
    const again = isToBeCleared(planned, part);
    planned.handOver(part, chunk.rows, this.#lackingRows(planned));
    const { oid, name } = planned.table;
    const done = planned.isDone;
    if (done) {
      this.#ports.window().untrack(oid);
      this.#untouched.delete(oid);
      this.#ending.add(planned);
    }
    const copyable = this.#ports.copyable(planned);
    handOver.rows(copyable, ready, again, (count) => {
      this.#ports.window().taken(chunk);
      meter.rows(name, count);
      if (done) {
        this.#ending.delete(planned);
        meter.tableDone(name);
        this.#ports.copied(planned);
      }
      this.#ports.reading().wake();
    });
    this.#ports.reading().wake();
  }

  discarded(chunks: readonly Chunk[], reason: DiscardReason): void {
    for (const oid of new Set(chunks.map(({ table }) => table.oid)))
      this.#ports.plan.find(oid)?.rewind();
    const [head] = chunks;
    if (head === undefined) return;
    if (reason === 'memory') this.#ports.reading().shrink(head.table.oid);
    if (reason === 'contended') this.#contended(head.table);
    this.#ports.reading().wake();
  }

  lackingChanged({ oid }: PublishedTable): void {
    const planned = this.#ports.plan.find(oid);
    // Of a table that is read from its beginning nothing needs to be known.
    if (planned?.isReading !== true) return;
    if (this.#ports.window().lacking(oid) === 'read-again')
      planned.beginAgain();
    else planned.lacks(this.#lackingRows(planned));
    this.progress();
    this.#ports.reading().wake();
  }

  lackingUncertain(commitLsn: Lsn): void {
    const { plan } = this.#ports;
    if (!plan.tables.some(({ isReading }) => isReading)) return;
    plan.uncertainSince(commitLsn);
    this.progress();
  }

  #contended({ oid, name, quotedName }: PublishedTable): void {
    const planned = this.#ports.plan.find(oid);
    if (planned === null) return;
    planned.inVain += 1;
    if (planned.inVain < MOST_ATTEMPTS)
      return this.#ports.meter.tableAgain(name);
    this.#ports.failed(
      new HaltError('snapshot_table_contended', {
        detail: `${quotedName} was written to in each of ${MOST_ATTEMPTS} attempts`,
      }),
    );
  }

  /** Lets the sink store what is known now. */
  progress(): void {
    if (!this.#ended) this.#ports.handOver.progress();
  }

  #lackingRows({ table }: PlannedTable): LackingRows | null {
    const rows = this.#ports.window().lacking(table.oid);
    if (rows === 'read-again' || rows.length === 0) return null;
    return {
      columns: identityOfTable(table).columns,
      keys: rows.map((row) => row.identity.map((value) => value ?? '')),
    };
  }
}

/** Whether the sink has rows of the table that this part of it would bring a second time. */
function isToBeCleared({ touched, inVain }: PlannedTable, part: Part): boolean {
  return part.kind === 'page' && part.first && (touched || inVain > 0);
}
