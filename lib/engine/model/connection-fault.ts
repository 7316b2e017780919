/**
 * Ends a connection that is then tried again. Its message is free of values and secrets, and is shown. Reading the changes of a
 * large transaction throws it when the rest cannot come on this connection: the whole transaction comes again.
 */
export class ConnectionFault extends Error {
  override readonly name = 'ConnectionFault';

  /**
   * @param retryAfterMs milliseconds until the next attempt; by default as after a lost connection
   */
  constructor(
    message: string,
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }
}
