/**
 * What closed a batch: it was full (`count`, `bytes`) or old enough (`delay`); something came that does not wait for it, a message
 * (`message`), a transaction too large to be held (`large`) or a change of a table (`schema_change`); or the pipeline ended the
 * connection (`stop`) or failed at the transaction behind it (`failure`).
 */
export type BatchReason =
  | 'count'
  | 'bytes'
  | 'delay'
  | 'message'
  | 'large'
  | 'schema_change'
  | 'stop'
  | 'failure';
