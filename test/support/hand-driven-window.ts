import { PgoutputDecoder } from '../../lib/engine/decode/pgoutput/pgoutput-decoder.js';
import { type Lsn, parseLsn } from '../../lib/engine/model/lsn.js';
import { ChunkWindow } from '../../lib/engine/snapshot/incremental/chunk-window.js';
import type { Chunk } from '../../lib/engine/snapshot/incremental/chunk.js';
import { parseSnapshot } from '../../lib/engine/snapshot/incremental/snapshot-text.js';
import {
  nextXid,
  type VisibleTransactions,
} from '../../lib/engine/snapshot/incremental/visibility.js';
import { WINDOW_BYTES } from '../../lib/engine/snapshot/incremental/window-ports.js';
import type { PublishedTable } from '../../lib/engine/server/published-table.js';
import { TypeTable } from '../../lib/engine/values/type-table.js';
import type { TestDatabase } from './test-database.js';

/** What the sink would be given: rows of a chunk, or keys that a transaction changed. */
export type HandedOver =
  | { readonly chunk: readonly string[] }
  | { readonly changed: readonly string[]; readonly xid: number };

/** A row of the table, as `id:v`. */
type Shown = string;

/**
 * A window over the table `t(id int primary key, v text)` of the publication `p`. Its stream is read from a slot by SQL, so that a test says
 * when what arrives.
 */
export class HandDrivenWindow {
  readonly handedOver: HandedOver[] = [];
  readonly window: ChunkWindow;
  readonly #decoder = new PgoutputDecoder(new TypeTable('text'));
  #open: { xid: number; changed: string[] } | null = null;

  private constructor(
    private readonly source: TestDatabase,
    private readonly slot: string,
    private readonly table: PublishedTable,
  ) {
    this.window = new ChunkWindow(
      { ...WINDOW_BYTES, pendingChunks: 100 },
      {
        ready: ({ rows }) =>
          this.handedOver.push({
            chunk: Array.from(rows, (row) => row.join(':')),
          }),
        askPosition: () => {},
        discarded: () => {},
        lackingChanged: () => {},
        lackingUncertain: () => {},
      },
      0n,
    );
  }

  /** @param slot - exists already */
  static async over(
    source: TestDatabase,
    slot: string,
  ): Promise<HandDrivenWindow> {
    const [row] = await source.query<{ oid: number }>(
      `select 't'::regclass::oid as oid`,
    );
    return new HandDrivenWindow(source, slot, tableWith(row?.oid ?? 0));
  }

  /** Begins to track; with `notBefore` it uses only what sees all before. */
  track(notBefore: bigint | null = null): void {
    this.window.track(this.table, notBefore);
  }

  /** The window is told everything that the slot has. */
  async stream(): Promise<void> {
    const rows = await this.source.query<{ data: Buffer }>(
      `select data from pg_logical_slot_get_binary_changes($1, null, null, 'proto_version', '1', 'publication_names', 'p')`,
      [this.slot],
    );
    for (const { data } of rows) this.#take(data);
  }

  /** Takes a snapshot and reads the table, as a chunk; the window is given it by {@link add}. */
  async read(): Promise<Chunk> {
    this.window.reading();
    const client = await this.source.connect();
    await client.query(
      'begin isolation level repeatable read read only; lock table t in access share mode',
    );
    const { rows: heads } = await client.query<{
      snapshot: string;
      recovery: boolean;
      position: string;
    }>(
      `select pg_current_snapshot()::text as snapshot, pg_is_in_recovery() as recovery,
         case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end as position`,
    );
    const { rows } = await client.query<[string, string]>({
      text: 'select id::text, v from t order by id',
      rowMode: 'array',
    });
    await client.query('commit');
    const [head] = heads;
    const readAt = lsnOf(head?.position);
    return {
      table: this.table,
      rows,
      bytes: 0,
      visible: visibleIn(head?.snapshot, head?.recovery === true),
      readAt,
      flushed: readAt,
    };
  }

  add(chunk: Chunk): 'pending' | 'stale' {
    return this.window.add(chunk);
  }

  /** Reads, and lets the stream come up to there. */
  async readAndStream(): Promise<'pending' | 'stale'> {
    const chunk = await this.read();
    const answer = this.add(chunk);
    await this.catchUp(chunk);
    return answer;
  }

  /** The stream comes up to the position of the chunk. */
  async catchUp({ readAt }: Chunk): Promise<void> {
    await this.stream();
    this.window.keepalive(readAt);
  }

  /** Rows of the chunk that was handed over last. */
  get lastChunk(): readonly Shown[] {
    const found = this.handedOver.findLast((one) => 'chunk' in one);
    if (found === undefined) throw new Error('No chunk was handed over.');
    return found.chunk;
  }

  /** Keys that the stream has brought, in its order. */
  get changed(): readonly string[] {
    return this.handedOver.flatMap((one) =>
      'changed' in one ? one.changed : [],
    );
  }

  #take(data: Buffer): void {
    const message = this.#decoder.decode(data);
    switch (message.kind) {
      case 'begin':
        this.window.begin(message);
        this.#open = { xid: message.xid, changed: [] };
        return;
      case 'insert':
      case 'update':
        this.#open?.changed.push(String(message.record['id']));
        return this.window.change(message);
      case 'delete':
        this.#open?.changed.push(String(message.old.record['id']));
        return this.window.change(message);
      case 'commit':
        this.window.ended();
        if (this.#open !== null) this.handedOver.push(this.#open);
        this.#open = null;
        return this.window.commit(message);
      case 'relation':
        return;
      default:
        throw new Error(`The stream brought ${message.kind}.`);
    }
  }
}

/** The first transaction id that was not given out, and the snapshot beside it. */
export async function transactionsOf(
  source: TestDatabase,
): Promise<{ readonly next: bigint; readonly visible: VisibleTransactions }> {
  const [row] = await source.query<{ snapshot: string; age: number }>(
    `select pg_current_snapshot()::text as snapshot, age('3'::xid) as age`,
  );
  const visible = visibleIn(row?.snapshot, false);
  return { next: nextXid(row?.age ?? 0, visible), visible };
}

function visibleIn(
  text: string | undefined,
  inRecovery: boolean,
): VisibleTransactions {
  const visible = parseSnapshot(text ?? '', inRecovery);
  if (visible === null) throw new Error('The server told no snapshot.');
  return visible;
}

function lsnOf(text: string | undefined): Lsn {
  const lsn = parseLsn(text ?? '');
  if (lsn === null) throw new Error('The server told no position.');
  return lsn;
}

function tableWith(oid: number): PublishedTable {
  const column = { typeModifier: -1 };
  return {
    oid,
    schema: 'public',
    table: 't',
    name: 'public.t',
    quotedName: 'public.t',
    partitioned: false,
    replicaIdentity: 'default',
    columns: [
      { ...column, name: 'id', quotedName: 'id', typeOid: 23, key: true },
      { ...column, name: 'v', quotedName: 'v', typeOid: 25, key: false },
    ],
    orderKey: [
      {
        name: 'id',
        quotedName: 'id',
        quotedType: 'integer',
        operatorSchema: 'pg_catalog',
        quotedCollation: null,
      },
    ],
    identityKey: null,
    rowFilter: null,
    estimatedRows: null,
    estimatedRowBytes: null,
  };
}
