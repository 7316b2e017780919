import type { BenchOptions } from './bench-options.js';
import type { CongestionControl } from './congestion-control.js';
import type { Cores } from './cores.js';
import type { PostgresServer } from '../support/postgres-server.js';
import type { Results } from './report.js';

/** What a bench works with. */
export interface BenchRun {
  readonly options: BenchOptions;
  readonly server: PostgresServer;
  readonly cores: Cores | null;
  readonly congestionControl: CongestionControl;
}

/** What a bench has found. */
export interface BenchOutcome {
  readonly results: Results;
  /** What went wrong; nobody should trust the results then. */
  readonly failures: readonly string[];
}
