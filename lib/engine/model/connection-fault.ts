/** Ends a connection that is then tried again. Its message is free of values and secrets, and is shown. */
export class ConnectionFault extends Error {
  override readonly name = 'ConnectionFault';
}
