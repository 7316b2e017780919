/** Rows that are written once and read by every reader. */
export interface Workload {
  readonly name: 'rows100' | 'single' | 'wide' | 'huge';
  readonly rows: number;
  readonly rowsPerTransaction: number;
  /** Characters of the text column. */
  readonly labelLength: number;
}

/** How a workload is read. */
export interface Load {
  readonly name: string;
  readonly workload: Workload;
  readonly transport: 'TCP' | 'TLS';
  /** Algorithm of the kernel for the connections; `null` where there is no choice. */
  readonly congestionControl: string | null;
  /** The server's `wal_sender_timeout`. */
  readonly walSenderTimeout: string;
  /** The sink takes breaks; only readers with a sink run. */
  readonly slowSink: boolean;
}

const TEXT_32 = 32;
/** Makes a row of 1.6 kB with the other columns. */
const TEXT_WIDE = 1_450;

/**
 * Every load, those of a workload in a row.
 *
 * @param scale of the number of rows
 * @param choices algorithms of congestion control; loads under any but the first have its name as suffix
 */
export function planLoads(
  scale: number,
  choices: readonly (string | null)[],
): Load[] {
  const scaled = (rows: number, rowsPerTransaction: number): number => {
    const transactions = Math.round((rows * scale) / rowsPerTransaction);
    return Math.max(1, transactions) * rowsPerTransaction;
  };
  const rows100: Workload = {
    name: 'rows100',
    rows: scaled(500_000, 100),
    rowsPerTransaction: 100,
    labelLength: TEXT_32,
  };
  const single: Workload = {
    name: 'single',
    rows: scaled(300_000, 1),
    rowsPerTransaction: 1,
    labelLength: TEXT_32,
  };
  const wide: Workload = {
    name: 'wide',
    rows: scaled(100_000, 100),
    rowsPerTransaction: 100,
    labelLength: TEXT_WIDE,
  };
  const hugeRows = scaled(3_000_000, 1);
  const huge: Workload = {
    name: 'huge',
    rows: hugeRows,
    rowsPerTransaction: hugeRows,
    labelLength: TEXT_32,
  };
  const read = (
    name: string,
    workload: Workload,
    transport: Load['transport'],
  ): Load[] =>
    choices.map((congestionControl, index) => ({
      name: index === 0 ? name : `${name}-${congestionControl}`,
      workload,
      transport,
      congestionControl,
      walSenderTimeout: '60s',
      slowSink: false,
    }));
  // What it shows is memory and liveness, and that does not depend on the algorithm.
  const hugeLoad: Load = {
    name: 'huge',
    workload: huge,
    transport: 'TCP',
    congestionControl: choices[0] ?? null,
    walSenderTimeout: '3s',
    slowSink: false,
  };
  return [
    ...read('rows100', rows100, 'TCP'),
    ...read('tls100', rows100, 'TLS'),
    ...read('single', single, 'TCP'),
    ...read('wide', wide, 'TCP'),
    hugeLoad,
    { ...hugeLoad, name: 'huge-slow', slowSink: true },
  ];
}
