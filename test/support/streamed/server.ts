import {
  beginFrame,
  commitFrame,
  deleteFrame,
  type FrameRelation,
  insertFrame,
  messageFrame,
  originFrame,
  relationFrame,
  streamAbortFrame,
  streamCommitFrame,
  streamedFrame,
  streamStartFrame,
  streamStopFrame,
  truncateFrame,
  typeFrame,
  updateFrame,
} from '../pgoutput-frames.js';
import { RelationCache } from './relation-cache.js';
import { type Item, type ModelTransaction, TABLES } from './transactions.js';

const FIRST_OID = 16_400;
/** The last table has a column of this type, which the catalog has to be asked about. */
export const ARRAY_OF_MOODS = 16_385;

/** Column names in the order of a version. */
function columnsOf(version: number): string[] {
  const names = ['a', 'b', 'c'];
  const first = names.splice(version % 3, 1);
  return ['id', ...first, ...(version % 2 === 0 ? names : names.toReversed())];
}

function relationOf(table: number, version: number): FrameRelation {
  const isLast = table === TABLES.length - 1;
  return {
    oid: FIRST_OID + table,
    table: `t${table}`,
    identity: table === 1 ? 'f' : 'd',
    columns: columnsOf(version).map((name) => ({
      name,
      key: table === 1 || name === 'id',
      ...(isLast && name === 'c' && { typeOid: ARRAY_OF_MOODS }),
    })),
  };
}

function valuesOf(version: number, number: number): string[] {
  // Some rows are as large as it takes to fill blocks.
  const long = number % 7 === 0 ? 'x'.repeat(700 * (number % 5)) : '';
  return columnsOf(version).map((name) =>
    name === 'c' ? `{c,"of ${number}"}` : `${name} of ${number}${long}`,
  );
}

/** What a server sends of a row and its like, without announcements. */
function frameOf(item: Exclude<Item, { kind: 'elsewhere' }>): Buffer {
  switch (item.kind) {
    case 'truncate':
      return truncateFrame(
        item.tables.map(({ table }) => FIRST_OID + table),
        item.subxid & 3,
      );
    case 'message':
      return messageFrame({
        flags: 1,
        lsn: item.lsn,
        prefix: 'p',
        content: Buffer.from(`content ${item.number}`),
      });
    case 'row': {
      const oid = FIRST_OID + item.table;
      const values = valuesOf(item.version, item.number);
      const kind = item.table === 1 ? 'O' : 'K';
      const old = values.map((value, at) =>
        kind === 'O' || at === 0 ? value : null,
      );
      if (item.op === 'insert') return insertFrame(oid, values);
      if (item.op === 'delete') return deleteFrame(oid, kind, old);
      return updateFrame(oid, values, { kind, values: old });
    }
  }
}

/** What one connection sends, message by message. */
export class ModelServer {
  readonly sent: Buffer[] = [];
  readonly #cache = new RelationCache();
  /** Transactions of which parts were sent; with the subtransactions of which anything was decoded in them. */
  readonly #streamed = new Map<ModelTransaction, Set<number>>();
  /** What was sent of them. */
  readonly #gone = new WeakSet<Item>();

  isStreamed(transaction: ModelTransaction): boolean {
    return this.#streamed.has(transaction);
  }

  invalidate(table: number): void {
    this.#cache.invalidate(table);
  }

  looseMessage(lsn: bigint, number: number): void {
    this.sent.push(
      messageFrame({
        flags: 0,
        lsn,
        prefix: 'p',
        content: Buffer.from(`content ${number}`),
      }),
    );
  }

  /** Sends what has come of a transaction since the last part, while it runs. */
  stream(transaction: ModelTransaction, withOrigin = false): void {
    const { xid } = transaction;
    const known = this.#streamed.get(transaction);
    const decoded = known ?? new Set();
    this.#streamed.set(transaction, decoded);
    this.sent.push(streamStartFrame(xid, known === undefined));
    if (withOrigin) this.sent.push(originFrame(1n, 'elsewhere'));
    for (const item of transaction.items) {
      if (this.#gone.has(item)) continue;
      this.#gone.add(item);
      decoded.add(item.subxid);
      // Messages are sent as if they belonged to no subtransaction.
      const subxid = item.kind === 'message' ? xid : item.subxid;
      for (const frame of this.#framesOf(item, xid))
        this.sent.push(streamedFrame(subxid, frame));
    }
    this.sent.push(streamStopFrame());
    for (const table of transaction.changed) this.invalidate(table);
  }

  /** Subtransactions were rolled back. */
  abort(transaction: ModelTransaction, subxids: readonly number[]): void {
    const decoded = this.#streamed.get(transaction);
    for (const subxid of subxids) {
      if (decoded?.delete(subxid) !== true) continue;
      this.sent.push(streamAbortFrame(transaction.xid, subxid));
      this.#cache.abort(transaction.xid);
    }
    for (const table of transaction.changed) this.invalidate(table);
  }

  /** All of it was. */
  abortWhole(transaction: ModelTransaction, subxids: readonly number[]): void {
    this.abort(transaction, subxids);
    if (!this.#streamed.delete(transaction)) return;
    this.sent.push(streamAbortFrame(transaction.xid, transaction.xid));
    this.#cache.abort(transaction.xid);
  }

  commit(transaction: ModelTransaction, lsn: bigint): void {
    const { xid, items } = transaction;
    const [end, micros] = [lsn + 8n, lsn * 1000n];
    if (this.#streamed.has(transaction)) {
      if (items.some((item) => !this.#gone.has(item))) this.stream(transaction);
      this.sent.push(streamCommitFrame(xid, lsn, end, micros));
      this.#streamed.delete(transaction);
      this.#cache.commit(xid);
    } else {
      const frames = items.flatMap((item) => this.#framesOf(item, null));
      if (frames.length > 0)
        this.sent.push(
          beginFrame(lsn, xid, micros),
          ...frames,
          commitFrame(lsn, end, micros),
        );
    }
    for (const table of transaction.changed) this.invalidate(table);
  }

  /** @param xid - of the whole transaction, when it is sent while it runs */
  #framesOf(item: Item, xid: number | null): Buffer[] {
    if (item.kind === 'elsewhere') return [];
    const tables =
      item.kind === 'row'
        ? [item]
        : item.kind === 'truncate'
          ? item.tables
          : [];
    return [
      ...tables
        .filter(({ table, version }) =>
          this.#cache.announce(table, version, xid),
        )
        .flatMap(({ table, version }) => [
          ...(table === TABLES.length - 1
            ? [typeFrame(ARRAY_OF_MOODS, 'public', '_mood')]
            : []),
          relationFrame(relationOf(table, version)),
        ]),
      frameOf(item),
    ];
  }
}
