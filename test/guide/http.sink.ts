import {
  formatLsn,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';

/** The receiver could not just now: the same request may succeed later. */
export class ReceiverUnavailable extends Error {}

/** The receiver does not accept this change, however often it comes. */
export class ReceiverRefused extends Error {}

const PASSES_BY_ITSELF = new Set([408, 425, 429]);

@ReplicantSink()
export class OrderWebhook {
  constructor(private readonly url: URL) {}

  @OnTransaction()
  async post(tx: Transaction): Promise<void> {
    for await (const change of tx.changes) {
      const key = `${formatLsn(tx.commitLsn)}-${change.ordinal}`;
      await this.send(key, JSON.stringify(change));
    }
  }

  private async send(key: string, body: string): Promise<void> {
    const response = await fetch(this.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body,
      signal: AbortSignal.timeout(10_000),
    });
    await response.arrayBuffer(); // so that the connection is used again
    if (response.ok) return;
    if (response.status >= 500 || PASSES_BY_ITSELF.has(response.status))
      throw new ReceiverUnavailable(`HTTP status ${response.status}`);
    throw new ReceiverRefused(`HTTP status ${response.status}`);
  }
}
