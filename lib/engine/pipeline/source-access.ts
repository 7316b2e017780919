import { ConnectionFault } from '../model/connection-fault.js';
import type { ConnectionOption } from '../options/pipeline-options.js';
import { judgeError } from '../server/error-classes.js';
import {
  type CommandSession,
  type SessionTarget,
  withSqlSession,
} from '../server/session.js';

/** How a pipeline reaches its source. */
export class SourceAccess {
  /** Holds secrets, and what shows an object shows its properties. */
  readonly #connection: ConnectionOption;

  constructor(
    connection: ConnectionOption,
    /** How its sessions call themselves. */
    readonly applicationName: string,
  ) {
    this.#connection = connection;
  }

  /** @param signal - tears a session down when it is aborted */
  target(signal: AbortSignal): SessionTarget {
    return {
      connection: this.#connection,
      applicationName: this.applicationName,
      signal,
    };
  }

  /**
   * Runs work on a short session. Of a failure only its class is told: the server's text may name what is nobody's business.
   *
   * @throws {@link ConnectionFault}
   */
  async ask<T>(
    work: (session: CommandSession) => Promise<T>,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<T> {
    try {
      return await withSqlSession(this.target(signal), work);
    } catch (error) {
      throw new ConnectionFault(judgeError(error, 'login').reason);
    }
  }
}
