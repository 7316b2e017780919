import { isTcp, type PacedSocket, pauseAtOnce } from './paced-socket.js';
import type { ReadGate } from './read-gate.js';
import { DENSE_WAIT_MS, EAGER, isPaced, paceAfter } from './read-pacing.js';
import { type Rate, ReadingRate } from './reading-rate.js';

/**
 * Bytes that one turn of the event loop takes in. Node reads on for up to 2 MB before anything else has its turn, and who
 * works on these in a later turn would find them all queued.
 */
const LARGEST_TURN_BYTES = 256 * 1024;

/** How a connection is read. */
export interface Reading extends Rate {
  /** The stream is dense, so bytes are left to gather between reads. */
  readonly pacing: boolean;
}

/**
 * Watches what each turn of the event loop reads from a socket. It holds the gate for the rests of a dense stream, and
 * until the next turn when one has taken in enough. Costs nothing per message: the socket emits `data` per read, and the
 * rest happens once per turn.
 */
export class PacedReading {
  readonly #socket: PacedSocket;
  readonly #gate: ReadGate;
  readonly #paces: boolean;
  readonly #rate: ReadingRate;
  readonly #onData = (chunk: Buffer): void => this.#take(chunk.length);
  #pace = EAGER;
  /** Bytes of this turn. */
  #bytes = 0;
  /** Bytes among them that had arrived before it. */
  #buffered = 0;
  /** When the first bytes of this turn came. */
  #began = 0;
  /** When the turn before ended, or the rest after it. */
  #idleSince: number;
  #turn: NodeJS.Immediate | null = null;
  #rest: NodeJS.Timeout | null = null;

  /** @param allowed - otherwise it only watches; so it does on anything but TCP, where pauses gain nothing */
  constructor(socket: PacedSocket, gate: ReadGate, allowed: boolean) {
    this.#socket = socket;
    this.#gate = gate;
    this.#paces = allowed && isTcp(socket);
    this.#idleSince = performance.now();
    this.#rate = new ReadingRate(this.#idleSince);
  }

  get reading(): Reading {
    const now = performance.now();
    const goesOn =
      this.#rest !== null ||
      this.#turn !== null ||
      now - this.#idleSince <= DENSE_WAIT_MS;
    return {
      ...this.#rate.over(now),
      pacing: isPaced(this.#pace) && goesOn,
    };
  }

  start(): void {
    if (this.#paces) pauseAtOnce(this.#socket);
    this.#socket.on('data', this.#onData);
  }

  /** Lets go of the socket and of the gate, for good. */
  stop(): void {
    this.#socket.off('data', this.#onData);
    if (this.#turn !== null) clearImmediate(this.#turn);
    if (this.#rest !== null) clearTimeout(this.#rest);
    this.#turn = null;
    this.#rest = null;
    this.#pace = EAGER;
    this.#gate.release('pacing');
  }

  #take(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= LARGEST_TURN_BYTES) this.#gate.hold('pacing');
    if (this.#turn !== null) return;
    this.#began = performance.now();
    this.#turn = setImmediate(() => this.#endTurn());
  }

  #endTurn(): void {
    const now = performance.now();
    const turn = {
      bytes: this.#bytes - this.#buffered,
      waitedMs: this.#began - this.#idleSince,
      ms: now - this.#idleSince,
    };
    this.#rate.note(this.#bytes, now);
    this.#turn = null;
    this.#bytes = 0;
    this.#buffered = 0;
    this.#idleSince = now;
    // Another hold ends the density: what arrives after it says nothing about the stream.
    if (this.#paces)
      this.#pace = this.#gate.paused ? EAGER : paceAfter(this.#pace, turn);
    const { restMs } = this.#pace;
    if (restMs > 0) this.#beginRest(restMs);
    else this.#goOn();
  }

  #beginRest(ms: number): void {
    this.#gate.hold('pacing');
    this.#rest = setTimeout(() => this.#endRest(), ms);
  }

  #endRest(): void {
    this.#rest = null;
    this.#idleSince = performance.now();
    if (this.#gate.paused) this.#pace = EAGER;
    this.#goOn();
  }

  #goOn(): void {
    this.#buffered = this.#socket.readableLength;
    this.#gate.release('pacing');
  }
}
