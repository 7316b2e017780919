/** A sink class that cannot work as it is written or provided. Raised at bootstrap, before any connection is opened. */
export class SinkDefinitionError extends Error {
  override readonly name = 'SinkDefinitionError';
}
