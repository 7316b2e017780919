/** One transaction. */
export interface LargeLoad {
  readonly name: 'rows1M' | 'rows10M';
  readonly rows: number;
  /**
   * The server's `logical_decoding_work_mem`: what a transaction has to reach before it is streamed while it runs. Its default, unless the
   * transaction is smaller.
   */
  readonly workMemKb: number;
}

const WORK_MEM_KB = 65_536;
const LEAST_WORK_MEM_KB = 64;

/**
 * Every load, the smaller one first.
 *
 * @param scale of the number of rows
 */
export function largeLoads(scale: number): LargeLoad[] {
  const workMemKb = Math.max(
    LEAST_WORK_MEM_KB,
    Math.round(WORK_MEM_KB * Math.min(1, scale)),
  );
  const load = (name: LargeLoad['name'], rows: number): LargeLoad => ({
    name,
    rows: Math.max(1, Math.round(rows * scale)),
    workMemKb,
  });
  return [load('rows1M', 1_000_000), load('rows10M', 10_000_000)];
}
