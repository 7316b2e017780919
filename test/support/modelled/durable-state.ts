import type { Lsn } from '../../../lib/engine/model/lsn.js';
import type { RawRow } from '../../../lib/engine/snapshot/raw-row.js';
import { KeylessSink, ModelSink } from './sink.js';

/** What is stored with the rows of a chunk. */
export interface ModelProgress {
  /** The key up to which rows are copied; `null` at the beginning. */
  readonly bound: number | null;
  readonly lacking: readonly RawRow[];
  /** A transaction that commits here may have left rows lacking that `lacking` does not name. */
  readonly uncertain: Lsn | null;
  readonly done: boolean;
}

/** What survives a crash of the consumer. */
export class DurableState {
  readonly sink = new ModelSink();
  readonly keyless = new KeylessSink();
  /** How many commits were in the log when the slot began. */
  slotBegins = 0;
  /** Of the last transaction that was applied. */
  checkpoint: Lsn = 0n;
  progress: ModelProgress = {
    bound: null,
    lacking: [],
    uncertain: null,
    done: false,
  };
}
