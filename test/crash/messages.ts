/** Prefix of the messages; the content is the number of the transaction. */
const PREFIX = 'crash';

/**
 * @param transactional - whether it belongs to its transaction, or comes even when that rolls back
 */
export function message(id: number, transactional: boolean): string {
  return `select pg_logical_emit_message(${transactional}, '${PREFIX}', '${id}')`;
}
