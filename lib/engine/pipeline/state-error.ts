/** A pipeline was asked for something that its state does not allow. */
export class PipelineStateError extends Error {
  override readonly name = 'PipelineStateError';
}
