import { type Deferred, deferred } from '../../model/deferred.js';
import { shownName } from '../../model/shown-name.js';
import { SnapshotRefusedError } from '../../model/snapshot-refused-error.js';
import type { TypesOption } from '../../options/pipeline-options.js';
import type { CaptureSet } from '../../server/capture/capture-set.js';
import { type SessionTarget, withSqlSession } from '../../server/session.js';
import { withWatchedSession } from '../../server/watched-session.js';
import { BackfillEndedError } from './backfill-ended-error.js';
import type { BackfillPlan } from './backfill-plan.js';
import type { ChunkOutcomes } from './chunk-outcomes.js';
import type { ReadableTable } from './chunk-reader.js';
import type { ChunkWindow } from './chunk-window.js';
import { type CopyableTable, discover, makeCopyable } from './discovery.js';
import type { PlannedTable } from './planned-table.js';
import { readNextXid } from './transactions.js';

/** What adding tables works with. */
export interface AddingPorts {
  readonly target: SessionTarget;
  readonly capture: CaptureSet;
  readonly types: TypesOption;
  readonly plan: BackfillPlan;
  readonly window: ChunkWindow;
  readonly outcomes: Pick<ChunkOutcomes, 'clear' | 'isEnding'>;
  /** Is told what is going to be copied. */
  copyable(table: CopyableTable): void;
  /** Tables were asked for; `added` when any of them is copied for that. */
  asked(added: boolean): void;
  /** Chunks of a table can be used from now on. */
  allowed(): void;
  failed(error: unknown): void;
}

/** No transaction has this id. */
const NEVER = 2n ** 64n;

/** Copies tables on demand, while the stream goes on. */
export class AddedTables {
  readonly #ports: AddingPorts;
  /** Who waits until a table is copied. */
  readonly #waiters = new Map<PlannedTable, Deferred<void>>();
  #ended = false;

  constructor(ports: AddingPorts) {
    this.#ports = ports;
  }

  /** Adds tables; see {@link Backfill.add}. */
  async add(names: readonly string[], begun: Set<string>): Promise<void> {
    const { target, capture, types } = this.#ports;
    const found = await withWatchedSession(target, async (session) => {
      const readable = await discover(session, capture);
      return makeCopyable(session, types, select(readable, names));
    }).catch((error: unknown) => {
      throw this.#ended ? new BackfillEndedError() : error;
    });
    if (this.#ended) throw new BackfillEndedError();
    const tables = found.map((one) => this.#addOne(one, begun));
    this.#ports.asked(tables.some(({ added }) => added));
    await Promise.all(tables.map(({ done }) => done));
  }

  /** The sink has taken all of a table. */
  copied(planned: PlannedTable): void {
    this.#waiters.get(planned)?.resolve();
    this.#waiters.delete(planned);
  }

  /** Nothing is copied any more. */
  end(): void {
    this.#ended = true;
    for (const waiter of this.#waiters.values())
      waiter.reject(new BackfillEndedError());
  }

  #addOne(
    copyable: CopyableTable,
    begun: Set<string>,
  ): { added: boolean; done: Promise<void> } {
    const { plan, window, outcomes } = this.#ports;
    const { name } = copyable.table;
    const known = plan.find(copyable.table.oid);
    if (begun.has(name) && plan.isCopied(copyable.table))
      return {
        added: false,
        done:
          known !== null && outcomes.isEnding(known)
            ? this.#taken(known)
            : Promise.resolve(),
      };
    const { table: planned, added } = plan.add(copyable.table);
    if (!added) begun.add(name);
    else {
      this.#ports.copyable(copyable);
      window.track(planned.table, NEVER);
      outcomes.clear(planned, () => {
        begun.add(name);
        void this.#allow(planned);
      });
    }
    return { added, done: this.#taken(planned) };
  }

  /** Resolves when the sink has taken all of a table. */
  #taken(planned: PlannedTable): Promise<void> {
    let waiter = this.#waiters.get(planned);
    if (waiter === undefined) {
      waiter = deferred();
      this.#waiters.set(planned, waiter);
    }
    return waiter.promise;
  }

  /** Finds out what chunks of an added table have to see: what the stream has brought before it was tracked. */
  async #allow(planned: PlannedTable): Promise<void> {
    const { target, window } = this.#ports;
    try {
      const notBefore = await withSqlSession(target, readNextXid);
      window.usableFrom(planned.table.oid, notBefore);
      planned.notBefore = notBefore;
      this.#ports.allowed();
    } catch (error) {
      this.#ports.failed(error);
    }
  }
}

/** The tables with these names. */
function select(
  readable: readonly ReadableTable[],
  names: readonly string[],
): readonly ReadableTable[] {
  const byName = new Map(readable.map((one) => [one.table.name, one]));
  return [...new Set(names)].map((name) => {
    const one = byName.get(name);
    if (one !== undefined) return one;
    throw new SnapshotRefusedError(
      `Nothing was copied: no publication of the pipeline carries a table ${JSON.stringify(shownName(name))}. Name it as changes do, such as public.orders; or add it to the publication.`,
    );
  });
}
