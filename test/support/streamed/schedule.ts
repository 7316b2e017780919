import { ModelServer } from './server.js';
import { ModelTransaction, TABLES } from './transactions.js';

/** What happens next, and two numbers to choose by. */
export type Step = readonly [what: StepName, a: number, b: number];

export type StepName = keyof typeof STEPS;

const MOST_RUNNING = 4;
const DEEPEST = 4;
const XIDS = 2 ** 32;
const FIRST_NORMAL_XID = 3;

/** What happened behind the first commits, for a connection that begins there. */
type Event = (server: ModelServer) => void;

/** The source database, and two connections to it: one is sent transactions while they run, the other when they have committed. */
export class Schedule {
  readonly streaming = new ModelServer();
  readonly #events: { readonly lsn: bigint; readonly play: Event }[] = [];
  readonly #running: ModelTransaction[] = [];
  readonly #versions = new Map<number, number>();
  #lastVersion = 0;
  #nextXid: number;
  #lsn = 1_000n;
  #number = 0;
  /** Commit positions of the transactions of which savepoints with messages, or around them, were rolled back when parts were sent. */
  readonly maybeUnclear = new Set<bigint>();
  readonly #messagesSent = new Set<ModelTransaction>();
  readonly #unclear = new Set<ModelTransaction>();

  constructor(firstXid: number) {
    this.#nextXid = firstXid;
  }

  step([what, a, b]: Step): void {
    STEPS[what](this, a, b);
  }

  /** What a connection that is sent whole transactions gets, from this commit on. */
  plainFrom(lsn: bigint): Buffer[] {
    const server = new ModelServer();
    for (const event of this.#events) if (event.lsn >= lsn) event.play(server);
    return server.sent;
  }

  begin(): void {
    if (this.#running.length < MOST_RUNNING)
      this.#running.push(new ModelTransaction(this.#xid(), () => this.#xid()));
  }

  write(a: number, b: number): void {
    const running = this.#chosen(a);
    if (running === undefined) return;
    const table = b % TABLES.length;
    const op = (['insert', 'insert', 'update', 'delete'] as const)[b % 4];
    const version = this.#versionFor(running, table);
    running.write({
      kind: 'row',
      op: op ?? 'insert',
      table,
      version,
      number: (this.#number += 1),
    });
  }

  truncate(a: number, b: number): void {
    const running = this.#chosen(a);
    if (running === undefined) return;
    const tables = TABLES.slice(b % TABLES.length).map((table) => ({
      table,
      version: this.#versionFor(running, table),
    }));
    running.write({ kind: 'truncate', tables });
  }

  message(a: number): void {
    const lsn = (this.#lsn += 8n);
    this.#chosen(a)?.write({
      kind: 'message',
      lsn,
      number: (this.#number += 1),
    });
  }

  elsewhere(a: number): void {
    this.#chosen(a)?.write({ kind: 'elsewhere' });
  }

  looseMessage(): void {
    const lsn = (this.#lsn += 8n);
    const number = (this.#number += 1);
    this.#happen(lsn, (server) => server.looseMessage(lsn, number));
  }

  savepoint(a: number): void {
    const running = this.#chosen(a);
    if (running !== undefined && running.depth < DEEPEST) running.savepoint();
  }

  release(a: number): void {
    this.#chosen(a)?.release();
  }

  rollBack(a: number, b: number): void {
    const running = this.#chosen(a);
    if (running === undefined) return;
    if (this.#messagesSent.has(running)) this.#unclear.add(running);
    this.streaming.abort(running, running.rollBack(1 + (b % DEEPEST)));
  }

  /** A table changes inside a transaction. */
  define(a: number, b: number): void {
    this.#chosen(a)?.define(b % TABLES.length, (this.#lastVersion += 1));
  }

  /** It changes for everybody, those that run included. */
  publish(b: number): void {
    const table = b % TABLES.length;
    this.#versions.set(table, (this.#lastVersion += 1));
    this.#invalidate(table);
  }

  /** Nothing changes, but the server cannot know: somebody has analysed the table. */
  analyse(b: number): void {
    this.#invalidate(b % TABLES.length);
  }

  stream(a: number, b: number): void {
    const running = this.#chosen(a);
    if (running === undefined) return;
    this.streaming.stream(running, b % 4 === 0);
    if (running.items.some(({ kind }) => kind === 'message'))
      this.#messagesSent.add(running);
  }

  commit(a: number): void {
    const running = this.#take(a);
    if (running === undefined) return;
    const lsn = (this.#lsn += 16n);
    this.#lsn += 8n;
    if (this.#unclear.has(running)) this.maybeUnclear.add(lsn);
    for (const [table, version] of running.versions)
      this.#versions.set(table, version);
    this.#happen(lsn, (server) => server.commit(running, lsn));
  }

  rollBackWhole(a: number): void {
    const running = this.#take(a);
    if (running !== undefined)
      this.streaming.abortWhole(running, running.rollBackAll());
  }

  /** Everything that runs commits. */
  finish(): void {
    while (this.#running.length > 0) this.commit(0);
  }

  #invalidate(table: number): void {
    this.#happen(this.#lsn, (server) => server.invalidate(table));
  }

  #happen(lsn: bigint, play: Event): void {
    this.#events.push({ lsn, play });
    play(this.streaming);
  }

  #versionFor(running: ModelTransaction, table: number): number {
    return running.versionOf(table) ?? this.#versions.get(table) ?? 0;
  }

  #chosen(a: number): ModelTransaction | undefined {
    return this.#running[a % Math.max(1, this.#running.length)];
  }

  #take(a: number): ModelTransaction | undefined {
    return this.#running.splice(a % Math.max(1, this.#running.length), 1)[0];
  }

  #xid(): number {
    const xid = this.#nextXid;
    this.#nextXid = xid + 1 === XIDS ? FIRST_NORMAL_XID : xid + 1;
    return xid;
  }
}

const STEPS = {
  begin: (schedule: Schedule) => schedule.begin(),
  write: (schedule: Schedule, a: number, b: number) => schedule.write(a, b),
  truncate: (schedule: Schedule, a: number, b: number) =>
    schedule.truncate(a, b),
  message: (schedule: Schedule, a: number) => schedule.message(a),
  elsewhere: (schedule: Schedule, a: number) => schedule.elsewhere(a),
  looseMessage: (schedule: Schedule) => schedule.looseMessage(),
  savepoint: (schedule: Schedule, a: number) => schedule.savepoint(a),
  release: (schedule: Schedule, a: number) => schedule.release(a),
  rollBack: (schedule: Schedule, a: number, b: number) =>
    schedule.rollBack(a, b),
  define: (schedule: Schedule, a: number, b: number) => schedule.define(a, b),
  publish: (schedule: Schedule, _: number, b: number) => schedule.publish(b),
  analyse: (schedule: Schedule, _: number, b: number) => schedule.analyse(b),
  stream: (schedule: Schedule, a: number, b: number) => schedule.stream(a, b),
  commit: (schedule: Schedule, a: number) => schedule.commit(a),
  rollBackWhole: (schedule: Schedule, a: number) => schedule.rollBackWhole(a),
} as const;

export const STEP_NAMES = Object.keys(STEPS).filter(isStepName);

function isStepName(name: string): name is StepName {
  return name in STEPS;
}
