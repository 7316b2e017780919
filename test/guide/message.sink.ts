import {
  type Message,
  OnMessage,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';

/** Empties a cache whenever the source says so. */
export abstract class Cache {
  abstract clear(name: string): Promise<void>;
}

@ReplicantSink()
export class CacheInvalidation {
  constructor(private readonly cache: Cache) {}

  @OnMessage({ prefix: 'cache' })
  async clear({ content }: Message): Promise<void> {
    await this.cache.clear(content.toString());
  }

  @OnTransaction()
  async apply(tx: Transaction): Promise<void> {
    for await (const { table } of tx.changes) await this.cache.clear(table);
    // Complete once the changes are read.
    for (const { prefix, content } of tx.messages)
      if (prefix === 'cache') await this.cache.clear(content.toString());
  }
}
