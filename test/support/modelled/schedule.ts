import type { WindowLimits } from '../../../lib/engine/snapshot/incremental/window-ports.js';
import { ModelConsumer } from './consumer.js';
import { DurableState } from './durable-state.js';
import { ModelTable, type TableKind } from './messages.js';
import { ModelReader } from './reader.js';
import { ModelSource, type ModelTransaction } from './source.js';

/** What differs from run to run beside the steps. */
export interface Setting {
  readonly kind: TableKind;
  readonly inRecovery: boolean;
  readonly firstXid: bigint;
  /** Rows at the beginning. */
  readonly rows: number;
  readonly chunkRows: number;
  readonly pendingChunks: number;
  readonly changedBytes: number;
  readonly lackingBytes: number;
}

/** What happens next, and two numbers to choose by. */
export type Step = readonly [what: StepName, a: number, b: number];

export type StepName = keyof typeof STEPS;

const KEYS = 10;
/** More than enough for any schedule. */
const MOST_ROUNDS = 3_000;
/** What the last change may add before the limit is noticed. */
const LAST_CHANGE_BYTES = 500;

/** A server, a consumer, and what they have done so far. */
export class Run {
  readonly source: ModelSource;
  readonly durable = new DurableState();
  readonly table: ModelTable;
  consumer: ModelConsumer;
  readonly #limits: WindowLimits;

  constructor(readonly setting: Setting) {
    const { kind, inRecovery, firstXid, rows } = setting;
    this.source = new ModelSource(firstXid, inRecovery, kind !== 'keyed');
    this.table = new ModelTable(kind);
    this.#limits = { ...setting, pendingBytes: 200 };
    const first = this.source.begin();
    for (let id = 0; id < rows; id++) this.source.write(first, id % KEYS, true);
    this.source.commit(first);
    if (!inRecovery) this.source.show(first);
    this.consumer = this.#connect(0);
  }

  /** The slot begins behind everything that is in the log. */
  beginSlot(): void {
    this.durable.checkpoint = this.source.log.at(-1)?.commitLsn ?? 0n;
    this.durable.slotBegins = this.source.log.length;
    this.consumer = this.#connect(0);
  }

  step([what, a, b]: Step): void {
    STEPS[what](this, a, b);
    const { changedBytes } = this.consumer.window;
    if (changedBytes > this.setting.changedBytes + LAST_CHANGE_BYTES)
      throw new Error(`Of changed rows, ${changedBytes} bytes are kept.`);
  }

  crash(again: number): void {
    this.consumer = this.#connect(again);
  }

  /** Ends every transaction and lets everything arrive. */
  finish(): void {
    for (const transaction of this.source.running.slice()) {
      if (!transaction.committed) this.source.commit(transaction);
      if (!this.source.inRecovery) this.source.show(transaction);
    }
    this.source.flush();
    for (let round = 0; round < MOST_ROUNDS; round++) {
      this.step(['send', 0, 0]);
      this.step(['answer', 0, 0]);
      this.step(['receive', 1, 4]);
      this.step(['read', 0, 0]);
      this.step(['add', 0, 0]);
      this.step(['poll', 0, 0]);
      while (this.consumer.take());
      if (this.consumer.isDone && this.consumer.stream.isDrained) return;
    }
    throw new Error('The copy does not complete.');
  }

  /** Throws when the sink is not what the source is. */
  compare(): void {
    const { source, durable } = this;
    if (this.setting.kind === 'keyless') {
      const expected = [...source.rows.values()].map(({ version }) => version);
      const found = [...durable.keyless.counts];
      if (
        found.length !== expected.length ||
        expected.some((version) => durable.keyless.counts.get(version) !== 1)
      )
        throw new Error('The sink is not what the source is.');
      return;
    }
    for (const [id, row] of source.rows) {
      const found = durable.sink.rows.get(id);
      if (found?.version !== row.version || found.large !== row.large)
        throw new Error(
          `Row ${id} is ${show(found)} in the sink and ${show(row)} in the source.`,
        );
    }
    for (const id of durable.sink.rows.keys())
      if (!source.rows.has(id)) throw new Error(`Row ${id} is in the sink.`);
  }

  /** A transaction that can still do something. */
  running(a: number): ModelTransaction | null {
    const open = this.source.running.filter(({ committed }) => !committed);
    return open[a % Math.max(1, open.length)] ?? null;
  }

  #connect(again: number): ModelConsumer {
    return new ModelConsumer(
      this.source,
      this.table,
      this.durable,
      this.#limits,
      new ModelReader(this.source, this.table, this.setting.chunkRows),
      again,
    );
  }
}

function show(row: { version: number; large: number | null } | undefined) {
  return row === undefined ? 'not' : `${row.version}/${row.large}`;
}

/** What can happen, each at any time. */
const STEPS = {
  begin: (run: Run) => {
    if (run.source.running.length < 5) run.source.begin();
  },
  write: (run: Run, a: number, b: number) =>
    inTransaction(run, a, (transaction) =>
      run.source.write(transaction, b % KEYS, b % 3 === 0),
    ),
  move: (run: Run, a: number, b: number) =>
    inTransaction(run, a, (transaction) =>
      run.source.move(
        transaction,
        b % KEYS,
        Math.floor(b / KEYS) % KEYS,
        b % 7 === 0,
      ),
    ),
  remove: (run: Run, a: number, b: number) =>
    inTransaction(run, a, (transaction) =>
      run.source.remove(transaction, b % KEYS),
    ),
  truncate: (run: Run, a: number) =>
    inTransaction(run, a, (transaction) => run.source.truncate(transaction)),
  savepoint: (run: Run, a: number) =>
    inTransaction(run, a, (transaction) => run.source.savepoint(transaction)),
  commit: (run: Run, a: number) =>
    inTransaction(run, a, (transaction) => run.source.commit(transaction)),
  /** What a transaction of one statement does: it is soon visible. */
  commitAndShow: (run: Run, a: number) =>
    inTransaction(run, a, (transaction) => {
      run.source.commit(transaction);
      if (!run.source.inRecovery) run.source.show(transaction);
    }),
  commitAsynchronously: (run: Run, a: number) =>
    inTransaction(run, a, (transaction) =>
      run.source.commitAsynchronously(transaction),
    ),
  flush: (run: Run) => run.source.flush(),
  show: (run: Run, a: number) => {
    const waiting = run.source.running.filter(({ committed }) => committed);
    const one = waiting[a % Math.max(1, waiting.length)];
    if (one !== undefined) run.source.show(one);
  },
  rollBack: (run: Run, a: number) =>
    inTransaction(run, a, (transaction) => run.source.rollBack(transaction)),
  writeElse: (run: Run) => run.source.writeElse(),
  send: (run: Run) => run.consumer.stream.send(),
  answer: (run: Run) => run.consumer.stream.answer(),
  receive: (run: Run, a: number, b: number) => {
    for (let i = 0; i <= b % 5; i++) run.consumer.receive(a % 4 === 0);
  },
  read: (run: Run) => run.consumer.read(),
  add: (run: Run) => run.consumer.add(),
  poll: (run: Run) => run.consumer.poll(),
  take: (run: Run) => run.consumer.take(),
  crash: (run: Run, a: number, b: number) => {
    if (a % 3 === 0) run.crash(b % 3);
  },
} satisfies Record<string, (run: Run, a: number, b: number) => unknown>;

export const STEP_NAMES = Object.keys(STEPS).filter(
  (name): name is StepName => name in STEPS,
);

/** If one is open. */
function inTransaction(
  run: Run,
  a: number,
  act: (transaction: ModelTransaction) => void,
): void {
  const transaction = run.running(a);
  if (transaction !== null) act(transaction);
}
