import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import { SnapshotRefusedError } from '../model/snapshot-refused-error.js';
import { judgeError } from '../server/error-classes.js';
import { BackfillEndedError } from '../snapshot/incremental/backfill-ended-error.js';
import type { PipelineConnection } from './connection.js';
import type { HandlerCall } from './handlers.js';
import { PipelineStateError } from './state-error.js';

/** Time after which a handler that asks is said to wait for itself. */
const PATIENCE_MS = 10_000;

/** What copying tables on demand asks of its pipeline. */
export interface AskedSnapshotPorts {
  /** The one that streams; throws when there is none. */
  connection(): Pick<PipelineConnection, 'snapshot'>;
  /** Resolves when the next connection streams; rejects when there will be none. */
  nextConnection(): Promise<void>;
  /** Of the sink, that asks; `null` when none does. */
  readonly handler: HandlerCall | null;
  warning(message: string): void;
}

/** Copies tables beside the stream; goes on with the next connection when one is lost. */
export async function copyTables(
  tables: readonly string[],
  ports: AskedSnapshotPorts,
): Promise<void> {
  const { handler } = ports;
  if (handler === null) return copyOverConnections(tables, ports);
  // The rows come behind what the handler works on. Only time tells one that awaits them from one that goes on.
  const timer = setTimeout(() => {
    if (handler.running)
      ports.warning(
        'a handler of the sink has called pipeline.snapshot() and has not ended for 10 s: if it awaits that, it waits for itself',
      );
  }, PATIENCE_MS);
  try {
    await copyOverConnections(tables, ports);
  } finally {
    clearTimeout(timer);
  }
}

async function copyOverConnections(
  tables: readonly string[],
  ports: AskedSnapshotPorts,
): Promise<void> {
  const begun = new Set<string>();
  for (;;) {
    try {
      await ports.connection().snapshot(tables, begun);
      return;
    } catch (error) {
      if (!(error instanceof BackfillEndedError)) throw shown(error);
    }
    await ports.nextConnection();
  }
}

/** The error as the caller gets it: a pipeline halts for what a table lacks, and here none has halted. */
function shown(error: unknown): unknown {
  if (
    error instanceof SnapshotRefusedError ||
    error instanceof PipelineStateError
  )
    return error;
  return error instanceof HaltError
    ? new SnapshotRefusedError(
        `Nothing was copied: ${error.halt.detail}. Then call snapshot() again; the pipeline has gone on streaming.`,
      )
    : new ConnectionFault(judgeError(error, 'connecting').reason);
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
