import { errorClass } from '../model/error-class.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import { synchronousName } from './preflight.js';
import { advisePublications } from './publication-advice.js';
import type { CommandSession } from './session.js';
import { adviseStreaming } from './streaming-advice.js';
import { adviseTables } from './table-advice.js';

/** What a person should know when a pipeline starts, though nothing is lost. Given once, on the first connection. */
export class Advice {
  #given = false;

  constructor(
    private readonly options: Pick<
      ResolvedOptions,
      'publications' | 'streaming' | 'maxInflightBytes'
    >,
    /** Those that the sink asks for by name. */
    private readonly tables: readonly string[],
    private readonly tell: (message: string) => void,
  ) {}

  /** Never rejects: whatever is wrong with advice keeps no pipeline from streaming. */
  async give(session: CommandSession): Promise<void> {
    if (this.#given) return;
    this.#given = true;
    try {
      for (const message of await this.#find(session)) this.tell(message);
    } catch (error) {
      this.tell(
        `publications and settings could not be looked over (${errorClass(error)})`,
      );
    }
  }

  async #find(session: CommandSession): Promise<string[]> {
    const { publications } = this.options;
    const found = [
      ...(await advisePublications(session, publications)),
      ...(await adviseTables(session, publications, this.tables)),
      ...(await adviseStreaming(session, this.options)),
    ];
    const own = await synchronousName(session);
    if (own !== null) {
      found.push(
        `synchronous_standby_names lets the source's commits wait for the application name "${own}", and so for the sink; name the standbys instead of *, or run: alter system reset synchronous_standby_names; select pg_reload_conf()`,
      );
    }
    return found;
  }
}
