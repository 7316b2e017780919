import type { ResolvedOptions } from '../options/resolve-options.js';
import type { CaptureSet } from '../server/capture/capture-set.js';
import type { CommandSession } from '../server/session.js';
import type { NeverCopied } from '../telemetry/snapshot-status.js';

/** More of them help nobody, and a status is sent with every health answer. */
const NAMED_TABLES = 50;

/** Knows which tables are captured and which were copied, each as it was found last. */
export class CopiedTables {
  #published: readonly string[] | null = null;
  #copied: readonly string[] | null = null;

  /** Asks which tables are captured, where the option `snapshot` makes that matter. */
  async look(
    session: CommandSession,
    { snapshot }: ResolvedOptions,
    capture: CaptureSet,
  ): Promise<void> {
    if (snapshot === null) return;
    const names = await capture.names(session);
    this.#published = names.map(({ schema, table }) => `${schema}.${table}`);
  }

  /**
   * @param names - of the tables that were copied, as changes have them, and of those that the copy under way has yet to copy; `null` when that
   * is not known
   */
  copied(names: readonly string[] | null): void {
    this.#copied = names;
  }

  get never(): NeverCopied | null {
    return neverCopied(this.#published, this.#copied);
  }
}

/** What is published and not copied; `null` when one of both is not known. */
export function neverCopied(
  published: readonly string[] | null,
  copied: readonly string[] | null,
): NeverCopied | null {
  if (published === null || copied === null) return null;
  const known = new Set(copied);
  const missing = [
    ...new Set(published.filter((name) => !known.has(name))),
  ].toSorted();
  return { count: missing.length, tables: missing.slice(0, NAMED_TABLES) };
}
