import type { Duplex } from 'node:stream';
import type { Client } from 'pg';
import { ConnectionFault } from '../model/connection-fault.js';
import {
  destroySocket,
  rawConnection,
  type RawConnection,
} from '../server/pg-internals.js';
import { openReplicationClient } from '../server/replication-login.js';
import {
  ANSWER_TIMEOUT_MS,
  closeClient,
  commandSession,
  type CommandSession,
  type SessionTarget,
} from '../server/session.js';

/** A notice that the server sent beside the stream: its SQLSTATE, severity and origin, never its text. */
export interface ServerNotice {
  readonly code: string;
  readonly severity: string;
  /** The server's source file that reports it, such as `slot.c`; empty when it is not told. */
  readonly file: string;
}

/** What a stream tells. Called synchronously while bytes are parsed. */
export interface StreamListener {
  /** One frame: the bytes from `start` to `end` of a buffer that is used again as soon as this returns. */
  frame(bytes: Buffer, start: number, end: number): void;
  notice(notice: ServerNotice): void;
}

/** Where frames go: nowhere before the stream has been asked for, and the server sends none then. */
interface FrameOutlet {
  listener: StreamListener | null;
}

/** The connection to a WAL sender: commands first, then the stream in both directions. */
export class ReplicationSession {
  readonly #client: Client;
  readonly #connection: RawConnection;
  readonly #frames: FrameOutlet;
  #ended: Promise<never> | null = null;

  private constructor(client: Client, frames: FrameOutlet) {
    this.#client = client;
    this.#connection = rawConnection(client);
    this.#frames = frames;
  }

  static async open(target: SessionTarget): Promise<ReplicationSession> {
    const frames: FrameOutlet = { listener: null };
    const client = await openReplicationClient(target, (bytes, start, end) =>
      frames.listener?.frame(bytes, start, end),
    );
    return new ReplicationSession(client, frames);
  }

  /** Rejects when the connection is lost while no command runs. Never resolves. */
  get lost(): Promise<never> {
    return new Promise((_, reject) => {
      this.#client.once('end', () =>
        reject(new ConnectionFault('the replication connection was lost')),
      );
    });
  }

  get commands(): CommandSession {
    return commandSession(this.#client);
  }

  /** The socket, for the one owner of pause and resume, and for who watches what it reads. */
  get socket(): Duplex {
    return this.#connection.stream;
  }

  /**
   * Sends START_REPLICATION and resolves when the server has accepted it. `accepted` runs before any frame is
   * delivered, in the same turn, so that reading can be paused in time.
   */
  async startStreaming(
    command: string,
    listener: StreamListener,
    accepted: () => void,
  ): Promise<void> {
    this.#client.on('notice', (notice) => {
      listener.notice({
        code: notice.code ?? '',
        severity: notice.severity ?? '',
        file: notice.file ?? '',
      });
    });
    this.#frames.listener = listener;
    const started = new Promise<void>((resolve) => {
      this.#connection.on('replicationStart', () => {
        accepted();
        resolve();
      });
    });
    this.#ended = this.#client.query(command).then(() => {
      throw new ConnectionFault('the server ended the stream');
    });
    const timer = setTimeout(() => this.destroy(), ANSWER_TIMEOUT_MS);
    try {
      await Promise.race([started, this.#ended]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Rejects when the stream ends, with the reason. Never resolves. */
  get ended(): Promise<never> {
    if (this.#ended === null) throw new Error('not streaming');
    return this.#ended;
  }

  /** Sends a CopyData frame. */
  send(frame: Buffer): void {
    this.#connection.sendCopyFromChunk(frame);
  }

  /** Ends the copy and waits until the server has taken note of everything sent before; then closes. Never rejects. */
  async finish(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.destroy(), timeoutMs);
    this.#connection.endCopyFrom();
    this.#connection.stream.resume();
    try {
      await this.#ended;
    } catch {
      // Ended in order or lost: either way there is nothing left to say.
    } finally {
      clearTimeout(timer);
    }
    await closeClient(this.#client, timeoutMs);
  }

  /** Cuts the connection. */
  destroy(): void {
    destroySocket(this.#client);
  }
}
