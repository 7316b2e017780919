import { ConnectionFault } from '../model/connection-fault.js';
import type { PipelineConnection } from './connection.js';
import { PipelineStateError } from './state-error.js';

/** What copying tables on demand asks of its pipeline. */
export interface AskedSnapshotPorts {
  /** The one that streams; throws when there is none. */
  connection(): PipelineConnection;
  /** Resolves when the next connection streams; rejects when there will be none. */
  nextConnection(): Promise<void>;
}

/** Copies tables beside the stream; goes on with the next connection when one is lost. */
export async function copyTables(
  tables: readonly string[],
  ports: AskedSnapshotPorts,
): Promise<void> {
  const begun = new Set<string>();
  for (;;) {
    try {
      await ports.connection().snapshot(tables, begun);
      return;
    } catch (error) {
      if (!(error instanceof ConnectionFault)) throw error;
    }
    await ports.nextConnection();
  }
}

/**
 * The names of tables, each once.
 *
 * @throws {@link PipelineStateError} when they are none
 */
export function namesOfTables(tables: readonly string[]): readonly string[] {
  const names: readonly unknown[] = Array.isArray(tables) ? tables : [];
  const texts = names.filter((name) => typeof name === 'string');
  if (texts.length === 0 || texts.length !== names.length)
    throw new PipelineStateError(
      "snapshot() takes the names of tables, as change.relation has them: such as ['public.orders'].",
    );
  return [...new Set(texts)];
}
