import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import {
  type Direction,
  type Faults,
  ProxiedConnection,
} from './proxied-connection.js';
import { freePort } from './free-port.js';

/** Sees the raw bytes that arrive at the proxy; they may be any part of a message. */
export type Tap = (
  bytes: Buffer,
  direction: Direction,
  connection: number,
) => void;

const DIRECTIONS: readonly Direction[] = [
  'client-to-server',
  'server-to-client',
];

/**
 * Stands between a client and a server on 127.0.0.1 and makes the network bad.
 *
 * A direction that is cut passes nothing, neither bytes nor the end of a connection, and no new connection reaches the
 * server: each side believes that the other is silent. After {@link TcpProxy.restore} a connection that still lives goes
 * on with what was held, as TCP does after a lost network comes back.
 */
export class TcpProxy {
  readonly host = '127.0.0.1';
  /** Called with everything that passes. */
  tap: Tap | null = null;
  readonly #connections = new Set<ProxiedConnection>();
  readonly #listener: Server;
  #faults: Faults = NONE;
  #accepted = 0;

  private constructor(
    readonly port: number,
    private readonly target: { readonly host: string; readonly port: number },
  ) {
    // allowHalfOpen: the end of one direction is passed on like its bytes.
    this.#listener = createServer(
      { allowHalfOpen: true, noDelay: true },
      (client) => {
        this.#accepted += 1;
        const number = this.#accepted;
        const connection = new ProxiedConnection(client, this.target, {
          faults: () => this.#faults,
          tap: (bytes, direction) => this.tap?.(bytes, direction, number),
          closed: () => this.#connections.delete(connection),
        });
        this.#connections.add(connection);
      },
    );
  }

  /** Starts a proxy in front of a server. */
  static async start(target: {
    readonly host: string;
    readonly port: number;
  }): Promise<TcpProxy> {
    const proxy = new TcpProxy(await freePort(), target);
    await once(proxy.#listener.listen(proxy.port, proxy.host), 'listening');
    return proxy;
  }

  /** Connections accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Connections of which at least one side is open. */
  get open(): number {
    return this.#connections.size;
  }

  /** Passes nothing any more, in no direction. */
  cut(): void {
    this.#change({ held: new Set(DIRECTIONS) });
  }

  /** Passes nothing any more in one direction. */
  halfOpen(direction: Direction): void {
    this.#change({ held: new Set([direction]) });
  }

  /** Delays all that passes; the order stays. */
  delay(milliseconds: number): void {
    this.#change({ delayMs: milliseconds });
  }

  /** Limits each direction of each connection. */
  throttle(bytesPerSecond: number): void {
    this.#change({ bytesPerSecond });
  }

  /** Ends all faults. */
  restore(): void {
    this.#change(NONE);
  }

  /** Resets (RST) every connection on both sides. New ones are served. */
  reset(): void {
    for (const connection of this.#connections) connection.reset();
  }

  /** Resets every connection and stops listening. */
  async close(): Promise<void> {
    this.#listener.close();
    this.reset();
    if (this.#listener.listening) await once(this.#listener, 'close');
  }

  #change(faults: Partial<Faults>): void {
    this.#faults = { ...this.#faults, ...faults };
    for (const connection of this.#connections) connection.faultsChanged();
  }
}

const NONE: Faults = { held: new Set(), delayMs: 0, bytesPerSecond: Infinity };
