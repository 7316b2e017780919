import {
  type Change,
  type ChangeContext,
  definePipeline,
  formatLsn,
  type Insert,
  OnChange,
  type Pipeline,
  type PipelineOptions,
  ReplicantSink,
} from 'nestjs-replicant';
import { describe, expect, it } from 'vitest';
import { bootWithStore } from './support/boot-with-store.js';
import { haltedFor } from './support/halted.js';
import { confirmedUpTo, currentLsn, readSlot } from './support/logical-slot.js';
import {
  sourceAndTarget,
  type SourceAndTarget,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TestApplication } from './support/test-application.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });
const TABLES = `create table orders(id int primary key, v text);
  create table items(id int primary key, v text);
  create table other(id int primary key);
  create publication p for all tables`;

type Row = { id: number; v: string };

interface Shop {
  'public.orders': Row;
  'public.items': Row;
}

const shop = definePipeline<Shop>('default');

/** What happens to a call of a method, such as `begin mail insert public.orders 0`. */
class Calls {
  readonly said: string[] = [];
  /** The keys of changes that were handled. */
  readonly keys: string[] = [];
  /** Whether the end of the transaction had arrived. */
  readonly ended: boolean[] = [];
  /** What a method does. */
  work: (change: Change, method: string) => Promise<unknown> = async () => {};

  async during(
    method: string,
    change: Change,
    { transaction }: ChangeContext,
  ): Promise<void> {
    const name = `${method} ${change.op} ${change.relation} ${change.ordinal}`;
    this.said.push(`begin ${name}`);
    this.ended.push(transaction.commitEndLsn !== null);
    await this.work(change, method);
    this.said.push(`end ${name}`);
    this.keys.push(`${formatLsn(transaction.commitLsn)} ${change.ordinal}`);
  }

  /** Methods that have resolved, in order. */
  get done(): readonly string[] {
    return this.said.flatMap((line) =>
      line.startsWith('end ') ? [line.slice(4)] : [],
    );
  }
}

@ReplicantSink()
class Effects {
  constructor(private readonly calls: Calls) {}

  @OnChange(shop, 'public.orders', { on: ['insert'] })
  async mail(
    change: Insert<'public.orders', Row>,
    context: ChangeContext,
  ): Promise<void> {
    await this.calls.during('mail', change, context);
  }

  @OnChange(shop, 'public.items', { on: ['insert', 'update', 'delete'] })
  @OnChange(shop, 'public.orders')
  async audit(change: Change<Shop>, context: ChangeContext): Promise<void> {
    await this.calls.during('audit', change, context);
  }
}

interface Running {
  readonly pipeline: Pipeline;
  readonly calls: Calls;
}

async function streaming(
  { source, target }: SourceAndTarget,
  options: Partial<PipelineOptions> = {},
  sink: new (calls: Calls) => Effects = Effects,
): Promise<Running> {
  const calls = new Calls();
  const pipeline = await bootWithStore(
    source,
    [sink, { provide: Calls, useValue: calls }],
    { checkpointStore: { connection: { ...target.connection } }, ...options },
  );
  return { pipeline, calls };
}

async function confirmed({ source }: SourceAndTarget): Promise<bigint> {
  const slot = await readSlot(source, `slot_${source.name}`);
  return slot?.confirmedFlushLsn ?? 0n;
}

async function stored({ target }: SourceAndTarget): Promise<unknown> {
  return target.query('select commit_lsn from replicant_checkpoints');
}

describe('methods with @OnChange', () => {
  it('are called in the order of the changes and of the class, each after the other, and not for other tables', async () => {
    const databases = await sourceAndTarget(suite, TABLES);
    const { pipeline, calls } = await streaming(databases);
    calls.work = () => databases.target.query('select pg_sleep(0.01)');
    await databases.source.query(`begin;
      insert into other values (1);
      insert into orders values (1, 'a');
      insert into items values (1, 'b');
      update orders set v = 'c';
      insert into other values (2);
      delete from items;
      insert into orders values (2, 'd');
      commit`);
    await pipeline.caughtUp();
    expect(calls.said).toEqual(
      [
        'mail insert public.orders 1',
        'audit insert public.orders 1',
        'audit insert public.items 2',
        'audit update public.orders 3',
        'audit delete public.items 5',
        'mail insert public.orders 6',
        'audit insert public.orders 6',
      ].flatMap((call) => [`begin ${call}`, `end ${call}`]),
    );
  });

  it('pass over a transaction of other tables, which is durable at once', async () => {
    const databases = await sourceAndTarget(suite, TABLES);
    const { source } = databases;
    const { pipeline, calls } = await streaming(databases);
    await source.query('insert into other values (1)');
    const end = await currentLsn(source);
    await pipeline.caughtUp();
    await confirmedUpTo(source, `slot_${source.name}`, end);
    expect(calls.said).toEqual([]);
  });

  it('are told of a truncation, unless they take other operations', async () => {
    const databases = await sourceAndTarget(suite, TABLES);
    const { pipeline, calls } = await streaming(databases);
    await databases.source.query('truncate items, orders');
    await pipeline.caughtUp();
    expect(calls.done).toEqual(['audit truncate public.orders 1']);
  });

  it('make a transaction durable when the last of them has resolved, not before', async () => {
    const databases = await sourceAndTarget(suite, TABLES);
    const { pipeline, calls } = await streaming(databases);
    const before = await stored(databases);
    let release = (): void => {};
    calls.work = ({ ordinal }, method) =>
      ordinal === 1 && method === 'audit'
        ? new Promise<void>((resolve) => (release = resolve))
        : Promise.resolve();
    const start = await currentLsn(databases.source);
    await databases.source.query(
      "insert into orders values (1, 'a'), (2, 'b')",
    );
    await waitFor(() => calls.said.length === 7);
    expect(await stored(databases)).toEqual(before);
    expect(await confirmed(databases)).toBeLessThanOrEqual(start);
    release();
    await pipeline.caughtUp();
    const [lsn = ''] = calls.keys[0]?.split(' ') ?? [];
    expect(await stored(databases)).toEqual([{ commit_lsn: lsn }]);
  });

  it('halt when one rejects: nothing is confirmed, and the whole transaction comes again', async () => {
    const databases = await sourceAndTarget(suite, TABLES);
    const { pipeline, calls } = await streaming(databases);
    await databases.source.query("insert into items values (1, 'a')");
    await pipeline.caughtUp();
    const before = await stored(databases);
    const broken = new RangeError('planted');
    calls.work = async ({ relation }) => {
      if (relation === 'public.items') throw broken;
    };
    await databases.source.query(`begin;
      insert into orders values (1, 'a');
      insert into items values (2, 'b');
      insert into orders values (2, 'c');
      commit`);
    const end = await currentLsn(databases.source);
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.detail).toBe('a handler of Effects failed with RangeError');
    expect(halt.sinkError()).toBe(broken);
    expect(await stored(databases)).toEqual(before);
    expect(await confirmed(databases)).toBeLessThan(end);

    calls.work = async () => {};
    pipeline.start();
    await pipeline.caughtUp();
    expect(calls.done).toEqual([
      'audit insert public.items 0',
      'mail insert public.orders 0',
      'audit insert public.orders 0',
      'mail insert public.orders 0',
      'audit insert public.orders 0',
      'audit insert public.items 1',
      'mail insert public.orders 2',
      'audit insert public.orders 2',
    ]);
    // The key of a change is the same when it comes again.
    expect(calls.keys[1]).toBe(calls.keys[3]);
    expect(new Set(calls.keys).size).toBe(4);
  });

  it('get the whole transaction again by sinkRetry', async () => {
    const databases = await sourceAndTarget(suite, TABLES);
    const { pipeline, calls } = await streaming(databases, {
      sinkRetry: { maxRetries: 1, backoffMs: 1 },
    });
    let failures = 0;
    calls.work = async ({ ordinal }, method) => {
      if (ordinal === 1 && method === 'mail' && failures++ === 0)
        throw new Error('planted');
    };
    await databases.source.query(
      "insert into orders values (1, 'a'), (2, 'b')",
    );
    await pipeline.caughtUp();
    expect(calls.done).toEqual([
      'mail insert public.orders 0',
      'audit insert public.orders 0',
      'mail insert public.orders 0',
      'audit insert public.orders 0',
      'mail insert public.orders 1',
      'audit insert public.orders 1',
    ]);
  });

  it('halt when one returns no promise, and the halt names it', async () => {
    const databases = await sourceAndTarget(suite, TABLES);
    @ReplicantSink()
    class Forgetful extends Effects {
      constructor(calls: Calls) {
        super(calls);
        Object.defineProperty(this, 'mail', { value: () => undefined });
      }
    }
    const { pipeline, calls } = await streaming(databases, {}, Forgetful);
    await databases.source.query("insert into orders values (1, 'a')");
    const halt = await haltedFor(pipeline, 'sink_failed/no_promise');
    expect(halt.detail).toBe('Forgetful.mail returned no promise');
    expect(calls.said).toEqual([]);
  });

  it('read a large transaction while it arrives', async () => {
    const databases = await sourceAndTarget(suite, TABLES);
    const { pipeline, calls } = await streaming(databases, {
      maxInflightBytes: 64 * 1024,
    });
    await databases.source.query(
      "insert into items select g, repeat('x', 1000) from generate_series(1, 1000) g",
    );
    await pipeline.caughtUp();
    expect(calls.done).toHaveLength(1000);
    expect(calls.ended[0]).toBe(false);
    expect(calls.done.at(-1)).toBe('audit insert public.items 999');
  });
});

describe('an application that is killed in a method with @OnChange', () => {
  it('is told the whole transaction again, by the same keys', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      'create table t(id int primary key); create publication p for table t',
    );
    await target.query(
      'create table told(commit_lsn pg_lsn, ordinal int, id int)',
    );
    const start = (env: Record<string, string> = {}): TestApplication =>
      TestApplication.start('changes', {
        SOURCE_URL: source.url,
        TARGET_URL: target.url,
        SLOT: `slot_${source.name}`,
        ...env,
      });
    const first = start({ HOLD: '3' });
    await first.says('streaming');
    await source.query('insert into t values (1)');
    await source.query('insert into t values (2), (3), (4)');
    await first.says('told 3');
    await first.kill();

    const second = start();
    await second.says('told 4');
    await confirmedUpTo(
      source,
      `slot_${source.name}`,
      await currentLsn(source),
    );
    const rows = await target.query<{ id: number }>('select id from told');
    expect(rows.map(({ id }) => id)).toEqual([1, 2, 3, 2, 3, 4]);
    const kept = await target.query<{ id: number }>(
      'select id from (select distinct commit_lsn, ordinal, id from told) as t order by id',
    );
    expect(kept.map(({ id }) => id)).toEqual([1, 2, 3, 4]);
    expect(second.said).not.toContain('halted');
  });
});
