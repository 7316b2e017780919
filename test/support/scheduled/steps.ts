/** Where a handler rejects. */
export type Refusal =
  /** Before the change of this number, or behind the last one. */
  | number
  /** When all is applied, and durable where the sink keeps the checkpoint. */
  | 'applied';

/** What interrupts the pipeline: its session at the server is ended, its connections are reset, or it is stopped and started. */
export type Crash =
  | { readonly how: 'terminated' | 'reset' | 'restarted' }
  /** A handler rejects, once. */
  | { readonly how: 'refused'; readonly refusal: Refusal };

/** What is left of a statement that was not rolled back. */
export interface Trace {
  /** Tells it apart, as {@link traceOf} does a delivered change. */
  readonly of: string;
  /** Changes; `null` for as many as the server says. */
  readonly rows: number | null;
}

/** One thing that is done, while nothing else is: by a session of the source, or with the pipeline. */
export type Step =
  | {
      readonly kind: 'statement';
      readonly session: number;
      readonly sql: string;
      readonly traces: readonly Trace[];
    }
  | { readonly kind: 'begin' | 'commit' | 'rollback'; readonly session: number }
  | {
      readonly kind: 'savepoint' | 'release' | 'rollback to';
      readonly session: number;
      readonly name: string;
    }
  | { readonly kind: 'crash'; readonly crash: Crash }
  /** The pipeline gets what is in the log so far. */
  | { readonly kind: 'arrival' };

/** A table of a schedule. */
export interface ScheduledTable {
  /** `schema.table`. */
  readonly name: string;
  /** Its replica identity is the whole row. */
  readonly full: boolean;
}

/** What is done with tables of its own, and what it depends on: nothing but its seed. */
export interface Schedule {
  readonly seed: number;
  readonly tables: readonly ScheduledTable[];
  readonly steps: readonly Step[];
}
