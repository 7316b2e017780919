/**
 * Ends a connection that is then tried again. Its message is free of values and secrets, and is shown. Reading the changes of a
 * large transaction throws it when the rest cannot come on this connection: the whole transaction comes again.
 */
export class ConnectionFault extends Error {
  override readonly name = 'ConnectionFault';

  constructor(
    message: string,
    /** Milliseconds after which it is tried again, where the fault has a pace of its own. */
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}
