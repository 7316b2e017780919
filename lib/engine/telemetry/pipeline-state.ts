/**
 * What a pipeline is doing.
 *
 * - `idle`: not started yet
 * - `connecting`: on the way to the first stream
 * - `snapshotting`: the rows that exist already are copied, before anything is streamed (option `snapshot`)
 * - `streaming`: transactions arrive
 * - `reconnecting`: the connection was lost or refused; it is tried again
 * - `standby`: another process holds the slot; this one takes over when it is gone (option `leaderElection`)
 * - `draining`: asked to stop, the running delivery ends
 * - `stopped`: ended as asked
 * - `halted`: stands still until somebody acts; see {@link Pipeline.halt}
 */
export type PipelineState =
  | 'idle'
  | 'connecting'
  | 'snapshotting'
  | 'streaming'
  | 'reconnecting'
  | 'standby'
  | 'draining'
  | 'stopped'
  | 'halted';
