/**
 * The `changes` of a transaction that is handed over while it arrives were used in a way that they do not allow: read a
 * second time, or after the handler had settled.
 */
export class ChangesError extends Error {
  override readonly name = 'ChangesError';
}
