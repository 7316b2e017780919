/** What is kept of transactions that the server sends while they run. */
export interface StreamedStatus {
  /** Transactions that have not ended. */
  readonly transactions: number;
  /** Bytes in memory. */
  readonly bytes: number;
  /** Bytes on disk. */
  readonly bytesOnDisk: number;
}
