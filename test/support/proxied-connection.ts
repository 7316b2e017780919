import { connect, type Socket } from 'node:net';

/** Which way bytes travel. */
export type Direction = 'client-to-server' | 'server-to-client';

/** What is done to the bytes of all connections. */
export interface Faults {
  readonly held: ReadonlySet<Direction>;
  readonly delayMs: number;
  readonly bytesPerSecond: number;
}

/** What a connection needs of its proxy. */
export interface ConnectionContext {
  faults(): Faults;
  tap(bytes: Buffer, direction: Direction): void;
  closed(): void;
}

/** One client with its connection to the server. */
export class ProxiedConnection {
  readonly #client: Socket;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #context: ConnectionContext;
  #server: Socket | null = null;
  #lanes: readonly Lane[] = [];

  constructor(
    client: Socket,
    target: { readonly host: string; readonly port: number },
    context: ConnectionContext,
  ) {
    this.#client = client;
    this.#target = target;
    this.#context = context;
    client.on('error', () => {});
    client.on('close', () => this.#ended());
    client.pause();
    this.faultsChanged();
  }

  faultsChanged(): void {
    const { held } = this.#context.faults();
    if (this.#server === null && !held.has('client-to-server'))
      this.#reachServer();
    for (const lane of this.#lanes) lane.wake();
  }

  reset(): void {
    reset(this.#client);
    if (this.#server !== null) reset(this.#server);
    this.#ended();
  }

  #reachServer(): void {
    const server = connect({
      ...this.#target,
      allowHalfOpen: true,
      noDelay: true,
    });
    this.#server = server;
    server.on('error', () => {});
    server.on('close', () => this.#ended());
    this.#lanes = [
      new Lane(this.#client, server, 'client-to-server', this.#context),
      new Lane(server, this.#client, 'server-to-client', this.#context),
    ];
  }

  #ended(): void {
    if (this.#client.destroyed && this.#server?.destroyed !== false)
      this.#context.closed();
  }
}

type Piece =
  | { readonly kind: 'bytes'; readonly due: number; readonly bytes: Buffer }
  | { readonly kind: 'end' | 'broken'; readonly due: number };

/** Reading pauses while this much waits to be passed on. */
const MAX_WAITING_BYTES = 1 << 20;
/** A throttled direction passes this many pieces a second. */
const PIECES_PER_SECOND = 50;

/** One direction: takes from one socket, and gives to the other in order, when the faults let it. */
class Lane {
  readonly #to: Socket;
  readonly #from: Socket;
  readonly #direction: Direction;
  readonly #context: ConnectionContext;
  readonly #waiting: Piece[] = [];
  #waitingBytes = 0;
  #notBefore = 0;
  #timer: NodeJS.Timeout | null = null;
  #full = false;

  constructor(
    from: Socket,
    to: Socket,
    direction: Direction,
    context: ConnectionContext,
  ) {
    this.#from = from;
    this.#to = to;
    this.#direction = direction;
    this.#context = context;
    from.on('data', (bytes: Buffer) => {
      context.tap(bytes, direction);
      this.#waitingBytes += bytes.length;
      this.#add({ kind: 'bytes', bytes, due: this.#due() });
    });
    from.on('end', () => this.#add({ kind: 'end', due: this.#due() }));
    from.on('close', (hadError) => {
      if (hadError) this.#add({ kind: 'broken', due: this.#due() });
    });
    to.on('drain', () => {
      this.#full = false;
      this.wake();
    });
    this.wake();
  }

  /** Passes on what may pass now. */
  wake(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (!this.#isHeld() && !this.#full) {
      const piece = this.#waiting[0];
      if (piece === undefined) break;
      const wait = Math.max(piece.due, this.#notBefore) - performance.now();
      if (wait > 0) {
        this.#timer = setTimeout(() => this.wake(), Math.ceil(wait));
        break;
      }
      this.#waiting.shift();
      this.#pass(piece);
    }
    this.#readOrPause();
  }

  #due(): number {
    return performance.now() + this.#context.faults().delayMs;
  }

  #add(piece: Piece): void {
    this.#waiting.push(piece);
    this.wake();
  }

  #pass(piece: Piece): void {
    switch (piece.kind) {
      case 'end':
        this.#to.end();
        return;
      case 'broken':
        reset(this.#to);
        return;
      case 'bytes':
        this.#passBytes(piece.bytes, piece.due);
    }
  }

  #passBytes(bytes: Buffer, due: number): void {
    const { bytesPerSecond } = this.#context.faults();
    const share = Math.max(1, Math.floor(bytesPerSecond / PIECES_PER_SECOND));
    const now = bytes.subarray(0, share);
    const later = bytes.subarray(share);
    if (later.length > 0)
      this.#waiting.unshift({ kind: 'bytes', bytes: later, due });
    this.#waitingBytes -= now.length;
    this.#notBefore = performance.now() + (now.length / bytesPerSecond) * 1000;
    this.#full = this.#to.writable && !this.#to.write(now);
  }

  #isHeld(): boolean {
    return this.#context.faults().held.has(this.#direction);
  }

  #readOrPause(): void {
    if (this.#isHeld() || this.#waitingBytes > MAX_WAITING_BYTES)
      this.#from.pause();
    else this.#from.resume();
  }
}

/** Node cannot reset a socket whose end was sent already: its handle would stay, and the process would never exit. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
