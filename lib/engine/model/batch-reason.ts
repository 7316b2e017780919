/**
 * What closed a batch: it was full (`count`, `bytes`) or old enough (`delay`); something came that does not wait for it, a message
 * (`message`), rows of a snapshot (`snapshot`) or a transaction too large to be held (`large`); the connection ends in order, or the server asks for everything, as it does when it shuts down (`stop`); or the sink refused the
 * transaction behind it (`failure`).
 */
export type BatchReason =
  | 'count'
  | 'bytes'
  | 'delay'
  | 'message'
  | 'snapshot'
  | 'large'
  | 'stop'
  | 'failure';
