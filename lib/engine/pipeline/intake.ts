import type { Assembled } from '../assemble/assembled.js';
import type { Assembler } from '../assemble/assembler.js';
import type { DecodeFault, Needed } from '../decode/decoder.js';
import type { StreamCommit } from '../decode/pgoutput/stream-messages.js';
import type { StreamedWork } from '../deliver/work.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import type { Lsn } from '../model/lsn.js';
import { PlainReadingFault } from '../model/plain-reading-fault.js';
import type { ReplicationMessage } from '../model/replication-message.js';
import type { TypesOption } from '../options/pipeline-options.js';
import type { Positions } from '../source/positions.js';
import {
  asksForReply,
  frameKind,
  framePosition,
  XLOG_DATA_HEADER,
} from '../source/wire.js';
import type { StreamWatch } from '../snapshot/incremental/stream-watch.js';
import { SpillError } from '../streamed/spill-error.js';
import type { StreamedTransaction } from '../streamed/streamed-transaction.js';
import { spillFailed } from '../streamed/streamed-room.js';
import type { StreamedTransactions } from '../streamed/streamed-transactions.js';
import type { CatalogState } from './catalog-guard.js';
import { Decoding, type DecodedPort, type DecodingPorts } from './decoding.js';
import { replay } from './replay.js';
import type { WatchedStream } from './watched-stream.js';

/** A connection ends after a transaction by which more tables were announced: it has to keep all of them, dropped ones too. */
const MAX_TABLES = 10_000;

const NO_BYTES = Buffer.alloc(0);
const NONE: ReadonlySet<number> = new Set();

/** What the intake asks of its connection. */
export interface IntakePorts extends DecodingPorts {
  readonly positions: Positions;
  /** Stops reading and asks whether any of these subtransactions, of a transaction that has committed, may have been rolled back. */
  rolledBack(subxids: readonly number[]): Promise<boolean>;
  /** The same of all that began after this transaction, but for those that are known to be. */
  rolledBackSince(xid: number, known: readonly number[]): Promise<boolean>;
  /** Whether a message outside transactions concerns the sink. */
  takes(prefix: string): boolean;
  /** Takes what is ready for the sink. */
  push(work: StreamedWork): void;
  /** The end of a transaction that was pushed while it arrived. */
  arrived(end: Lsn): void;
  /** What is left out as ordered ends here. Called before it is pushed. */
  passedOver(end: Lsn): void;
  /** The server told its position; `replyAsked` when it wants an answer at once. */
  keepalive(replyAsked: boolean): void;
  /** Nothing is read as long as a transaction is run through that was sent before. */
  replaying(runs: boolean): void;
  /** Resolves when there is room for more; `null` when there is. */
  room(): Promise<void> | null;
  fail(error: unknown): void;
}

/** Turns the frames of one connection into work for the sink: frame, message, transaction. */
export class PipelineIntake {
  readonly #ports: IntakePorts;
  readonly #decoding: Decoding;
  readonly #decoded: DecodedPort = {
    message: (message, bytes, start, end) =>
      this.#accept(message, bytes, start, end),
    fault: (fault) => this.#halt(fault),
  };
  readonly #streamed: StreamedTransactions | null;
  /** `null` when nobody compares the stream with rows that were read. */
  #watched: WatchedStream | null = null;
  readonly #maxTables: number;
  #assembler: Assembler | null = null;
  /** Copies of frames that arrived while something has to be asked first. */
  #backlog: Buffer[] | null = [];
  /** Frames are no longer taken in. */
  #closed = false;
  /** They are taken in up to the next end of a transaction. */
  #closing = false;

  /** @param streamed - keeps transactions that are sent while they run; `null` when none are */
  constructor(
    types: TypesOption,
    ports: IntakePorts,
    streamed: StreamedTransactions | null = null,
    maxTables = MAX_TABLES,
  ) {
    this.#ports = ports;
    this.#streamed = streamed;
    this.#maxTables = maxTables;
    this.#decoding = new Decoding(types, ports);
  }

  /** Payload bytes held for a transaction whose end was not taken in. */
  get openBytes(): number {
    return this.#assembler?.openBytes ?? 0;
  }

  /**
   * Begins with what has arrived so far; until then frames are put off.
   *
   * @param watch - is told of it too, as text
   */
  begin(assembler: Assembler, watch?: StreamWatch): void {
    this.#assembler = assembler;
    if (watch !== undefined)
      this.#watched = this.#decoding.watchedBy(watch, (fault) =>
        this.#halt(fault),
      );
    this.#replay();
  }

  /**
   * Takes nothing in any more. Keepalives are still answered, but their positions no longer count: transactions before
   * them may have been passed over here, and confirming the position would lose them.
   */
  close(): void {
    this.#closed = true;
    this.#assembler?.cut(
      new ConnectionFault('the connection ended before the transaction did'),
    );
  }

  /** Takes in the rest of the transaction that arrives, and nothing after it. */
  closeAfterTransaction(): void {
    this.#closing = true;
  }

  /** See {@link Decoding.review}. */
  review(state: CatalogState): void {
    this.#decoding.review(state);
  }

  /** Takes the frame from `start` to `end` of a buffer that is used again, so what waits is copied. */
  take(bytes: Buffer, start: number, end: number): void {
    if (this.#backlog !== null && !this.#closed) {
      this.#backlog.push(copyOf(bytes, start, end));
      return;
    }
    const kind = frameKind(bytes, start, end);
    if (kind === 'keepalive') {
      if (!this.#closed) {
        const position = framePosition(bytes, start);
        this.#ports.positions.keepalive(position);
        this.#watched?.keepalive(position);
      }
      this.#ports.keepalive(asksForReply(bytes, start));
    } else if (this.#closed) {
      return;
    } else if (kind === 'data') {
      this.#ports.positions.receive(framePosition(bytes, start));
      this.#decode(bytes, start, end);
    } else {
      this.#fail(
        new HaltError('decode_failure', {
          detail: 'a frame of the replication stream is malformed',
        }),
      );
    }
  }

  /** Takes in what was put off, until it has to be put off again. */
  #replay(): void {
    const frames = this.#backlog ?? [];
    this.#backlog = null;
    for (const frame of frames) this.take(frame, 0, frame.length);
  }

  #decode(bytes: Buffer, start: number, end: number): void {
    const payload = start + XLOG_DATA_HEADER;
    const taken = this.#streamed?.take(bytes, payload, end);
    switch (taken?.kind) {
      case 'kept':
        return;
      case 'fault':
        return this.#halt(taken);
      case 'unclear':
        return this.#endWith(new PlainReadingFault(taken.commit.commitLsn));
      case 'committed':
        this.#backlog = [];
        void this.#runThrough(taken.transaction, taken.commit);
        return;
      default:
    }
    const needed = this.#feed(bytes, payload, end);
    if (needed === null) return;
    this.#backlog = [copyOf(bytes, start, end)];
    void this.#askAndGoOn(needed);
  }

  /** Takes a message; gives what has to be learned before that is possible. */
  #feed(bytes: Buffer, start: number, end: number): Needed | null {
    return this.#decoding.feed(bytes, start, end, this.#decoded);
  }

  #accept(
    message: ReplicationMessage,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    if (message.kind === 'begin') {
      this.#ports.positions.begin();
      // The next connection finds out which.
      if (this.#decoding.begin(message) === 'tables-gone')
        this.#endWith(new ConnectionFault('a captured table is gone'));
    }
    this.#watched?.taken(message, bytes, start, end);
    const assembled = this.#assembler?.accept(message, end - start) ?? null;
    if (assembled?.kind === 'arriving') this.#watched?.arriving();
    if (assembled !== null) this.#pass(assembled);
    this.#watched?.passed(message);
    if (message.kind === 'commit' && this.#decoding.tables > this.#maxTables)
      this.#endWith(
        new ConnectionFault(
          `more than ${this.#maxTables} tables were announced on one connection`,
        ),
      );
  }

  async #askAndGoOn(needed: Needed): Promise<void> {
    try {
      await this.#decoding.ask(needed);
      this.#replay();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Runs a transaction through that was sent while it was running; what follows it is put off until then. */
  async #runThrough(
    transaction: StreamedTransaction,
    commit: StreamCommit,
  ): Promise<void> {
    const isClosed = (): boolean => this.#closed;
    this.#ports.replaying(true);
    this.#beginScope();
    try {
      if (await this.#hidesRollback(transaction))
        return this.#endWith(new PlainReadingFault(commit.commitLsn));
      const whole = await replay(transaction, commit, {
        get closed() {
          return isClosed();
        },
        accept: (message) => this.#accept(message, NO_BYTES, 0, 0),
        feed: (bytes, start, end) => this.#feed(bytes, start, end),
        ask: (needed) => this.#decoding.ask(needed),
        room: () => this.#ports.room(),
      });
      if (whole) this.#endScope(this.#streamed?.settle(transaction) ?? NONE);
      this.#ports.replaying(false);
      this.#replay();
    } catch (error) {
      // What is kept is let go of when nothing is taken in any more.
      if (this.#closed) return;
      this.#fail(error instanceof SpillError ? spillFailed(error) : error);
    }
  }

  /** PostgreSQL 14 to 18 forget to say so of a subtransaction that had more than 4,096 changes in files of the server. */
  async #hidesRollback({
    xid,
    subtransactions,
    hasMessages,
    rolledBack,
  }: StreamedTransaction): Promise<boolean> {
    if (hasMessages)
      return await this.#ports.rolledBackSince(xid, [...rolledBack]);
    return (
      subtransactions.size > 0 &&
      (await this.#ports.rolledBack([...subtransactions]))
    );
  }

  #beginScope(): void {
    this.#decoding.beginScope();
    this.#watched?.beginScope();
  }

  #endScope(kept: ReadonlySet<number>): void {
    const others = this.#decoding.endScope(kept);
    this.#assembler?.goOnWith(others);
    this.#watched?.endScope(kept);
  }

  #halt({ code, detail }: DecodeFault): void {
    this.#fail(new HaltError(code, { detail }));
  }

  #pass(assembled: Assembled): void {
    switch (assembled.kind) {
      case 'fault':
        return this.#fail(new HaltError(assembled.code, assembled));
      case 'schema-change':
        return this.#endWith(assembled.fault);
      case 'arriving':
      case 'transaction':
        return this.#ports.push(assembled);
      case 'message': {
        const { lsn, prefix } = assembled.message;
        return this.#ports.push(
          this.#ports.takes(prefix)
            ? assembled
            : { kind: 'pass', end: lsn, empty: true },
        );
      }
      case 'arrived':
        this.#ports.arrived(assembled.end);
        if (this.#closing) this.close();
        return;
      case 'passed-over':
        this.#ports.passedOver(assembled.endLsn);
        break;
      case 'skipped':
      case 'empty':
        break;
    }
    this.#ports.push({
      kind: 'pass',
      end: assembled.endLsn,
      empty: assembled.kind === 'empty',
    });
  }

  /** Takes in nothing more; the connection ends when everything before is durable. */
  #endWith(fault: ConnectionFault): void {
    if (this.#closed) return;
    this.close();
    this.#ports.push({ kind: 'end', fault });
  }

  #fail(error: unknown): void {
    this.close();
    this.#ports.fail(error);
  }
}

function copyOf(bytes: Buffer, start: number, end: number): Buffer {
  return Buffer.from(bytes.subarray(start, end));
}
