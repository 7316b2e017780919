import type { Lsn } from '../model/lsn.js';
import { judgeLiveness } from './liveness.js';
import type { Positions } from './positions.js';
import { statusDueIn, statusInterval, storeDueIn } from './status-timing.js';
import { writeStatus } from './wire.js';

/** How long nothing is looked at, and the time between status updates while reading is paused. */
const LONGEST_REST_MS = 1_000;

/** Between a status update and the next one that asks where the server is. */
const ASK_PAUSE_MS = 2;

/** What feedback needs of its connection. */
export interface FeedbackPorts {
  readonly positions: Positions;
  readonly walSenderTimeoutMs: number;
  /** Reading is paused. */
  paused(): boolean;
  send(frame: Buffer): void;
  /** Asks for a store of positions that no transaction carries. */
  requestStore(): void;
  /** The server has fallen silent. */
  dead(): void;
}

/**
 * Talks back to the server on a timer of its own, whatever reading and the sink do: tells it what is durable, answers
 * its questions, and notices when it has fallen silent.
 */
export class Feedback {
  readonly #ports: FeedbackPorts;
  readonly #interval: number;
  #timer: NodeJS.Timeout | null = null;
  #timerAt = Infinity;
  #stopped = true;
  #sentAt = 0;
  #sentFlush: Lsn;
  #replyAsked = false;
  /** Somebody wants to know where the server is. */
  #asking = false;
  #storedAt = 0;
  #storeAsked = false;
  #heardAt = 0;
  #heard = false;
  #probedAt: number | null = null;

  constructor(ports: FeedbackPorts) {
    this.#ports = ports;
    this.#interval = statusInterval(ports.walSenderTimeoutMs);
    this.#sentFlush = ports.positions.flush;
  }

  /** Begins with the stream. */
  start(): void {
    const now = performance.now();
    this.#stopped = false;
    this.#sentAt = now;
    this.#storedAt = now;
    this.#heardAt = now;
    this.#plan(now);
  }

  /** Bytes arrived. Called for every frame, so it only takes a note. */
  heard(): void {
    this.#heard = true;
  }

  /** The server asks for an answer. */
  replyAsked(): void {
    this.#replyAsked = true;
    this.#storeAsked = true;
    this.#plan(performance.now());
  }

  /** Asks the server where it is: soon, since somebody waits, and not as fast as it answers. */
  ask(): void {
    this.#asking = true;
    this.#plan(performance.now());
  }

  /** A position moved. */
  moved(): void {
    if (this.#stopped || this.#ports.positions.flush === this.#sentFlush)
      return;
    this.#plan(performance.now());
  }

  /** Sends a last status update and rests. */
  finish(): void {
    if (!this.#stopped) this.#send(performance.now(), false);
    this.stop();
  }

  stop(): void {
    this.#stopped = true;
    this.#disarm();
  }

  #plan(now: number): void {
    if (this.#stopped) return;
    const { positions } = this.#ports;
    const status = this.#sendDueIn(now);
    const store =
      positions.storable === null ? Infinity : this.#storeDueIn(now);
    const life = this.#liveness(now);
    this.#arm(
      now +
        Math.min(
          status,
          store,
          life.kind === 'wait' ? life.ms : 0,
          LONGEST_REST_MS,
        ),
      now,
    );
  }

  #arm(at: number, now: number): void {
    if (at >= this.#timerAt) return;
    this.#disarm();
    this.#timerAt = at;
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, at - now));
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#timerAt = Infinity;
  }

  #tick(): void {
    this.#disarm();
    const now = performance.now();
    this.#noteHearing(now);
    const life = this.#liveness(now);
    if (life.kind === 'drop') return this.#ports.dead();
    const probe = life.kind === 'probe';
    if (probe) this.#probedAt = now;
    if (probe || this.#sendDueIn(now) <= 0)
      this.#send(now, probe || this.#asking);
    if (this.#ports.positions.storable !== null && this.#storeDueIn(now) <= 0) {
      this.#storedAt = now;
      this.#storeAsked = false;
      this.#ports.requestStore();
    }
    this.#plan(now);
  }

  #noteHearing(now: number): void {
    if (!this.#heard && !this.#ports.paused()) return;
    this.#heard = false;
    this.#heardAt = now;
    this.#probedAt = null;
  }

  #liveness(now: number): ReturnType<typeof judgeLiveness> {
    return judgeLiveness({
      silence: now - this.#heardAt,
      sinceProbe: this.#probedAt === null ? null : now - this.#probedAt,
      walSenderTimeoutMs: this.#ports.walSenderTimeoutMs,
      paused: this.#ports.paused(),
    });
  }

  #sendDueIn(now: number): number {
    const status = this.#statusDueIn(now);
    return this.#asking
      ? Math.min(status, ASK_PAUSE_MS - (now - this.#sentAt))
      : status;
  }

  #statusDueIn(now: number): number {
    return statusDueIn({
      sinceLast: now - this.#sentAt,
      // A paused socket tells nothing of its end: only writing to it does.
      interval: this.#ports.paused()
        ? Math.min(this.#interval, LONGEST_REST_MS)
        : this.#interval,
      moved: this.#ports.positions.flush !== this.#sentFlush,
      replyAsked: this.#replyAsked,
    });
  }

  #storeDueIn(now: number): number {
    return storeDueIn(now - this.#storedAt, this.#interval, this.#storeAsked);
  }

  #send(now: number, askReply: boolean): void {
    const { status, withheld } = this.#ports.positions;
    const told = status.flush === this.#sentFlush;
    this.#sentAt = now;
    this.#sentFlush = status.flush;
    this.#replyAsked = false;
    if (askReply) this.#asking = false;
    this.#ports.send(
      writeStatus(
        // A server that shuts down waits until the flushed position, or without one the written one, reaches its end.
        withheld && told ? { ...status, flush: 0n, apply: 0n } : status,
        Date.now(),
        askReply,
      ),
    );
  }
}
