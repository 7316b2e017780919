import { ConnectionFault } from './connection-fault.js';
import type { Lsn } from './lsn.js';
import type { SchemaChange } from './schema-change.js';

/** Ends a connection at a transaction that carries destructive schema changes: the sink has to be asked before it is read again. */
export class SchemaChangeFault extends ConnectionFault {
  /**
   * @param changes - in the order in which the sink is asked
   * @param commitLsn - of the transaction that carries them
   */
  constructor(
    readonly changes: readonly SchemaChange[],
    readonly commitLsn: Lsn,
  ) {
    super(
      `the schema changed inside a transaction: ${changes.map(describeChange).join('; ')}`,
    );
  }
}

/** The table and what became of it. */
export function describeChange({ relation, detail }: SchemaChange): string {
  return `${relation}: ${detail}`;
}
