/** The connection ended before tables were copied that were asked for: the next one goes on. */
export class BackfillEndedError extends Error {
  override readonly name = 'BackfillEndedError';
}
