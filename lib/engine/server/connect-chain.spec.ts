import { describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../../../test/support/keeper.js';
import type { StoredCheckpoint } from '../model/checkpoint.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError, type Halt } from '../model/halt.js';
import type { PipelineOptions } from '../options/pipeline-options.js';
import { resolveOptions } from '../options/resolve-options.js';
import { captureSetOf } from './capture/capture-set-of.js';
import type { ChainSubject, ConsultedSink } from './chain-subject.js';
import { runConnectChain, type StreamPlan } from './connect-chain.js';
import { SlotHeldError } from './slot-holder.js';
import type { CommandSession, TextRow } from './session.js';
import type { SlotRow } from './slot.js';

const SLOT: SlotRow = {
  slot_type: 'logical',
  plugin: 'pgoutput',
  database: 'shop',
  temporary: false,
  active: false,
  two_phase: false,
  failover: false,
  synced: false,
  confirmed_flush_lsn: '0/64',
};

/** A server that answers as PostgreSQL 18 does, but for what a test changes. */
class StubServer implements CommandSession {
  identity: readonly TextRow[] = [
    { systemid: '7', timeline: '1', xlogpos: '0/3E8', dbname: 'shop' },
  ];
  version = '180004';
  inRecovery = 'f';
  slot: SlotRow | null = null;

  constructor(readonly log: string[]) {}

  async query(text: string): Promise<readonly TextRow[]> {
    const [answer, step] = this.#answer(text);
    this.log.push(step);
    return answer;
  }

  queryPatiently(text: string): Promise<readonly TextRow[]> {
    return this.query(text);
  }

  #answer(text: string): [readonly TextRow[], string] {
    if (text === 'IDENTIFY_SYSTEM') return [this.identity, 'identify'];
    if (text === 'select') return [[], 'alive'];
    if (text.includes('server_version_num')) {
      const { version, inRecovery } = this;
      return [
        [
          {
            version,
            wal_level: 'logical',
            in_recovery: inRecovery,
            wal_sender_timeout: '60000',
            database_oid: '16384',
          },
        ],
        'probe',
      ];
    }
    if (text.includes('pg_try_advisory_lock'))
      return [[{ claimed: 't' }], 'claim'];
    if (text.includes('pg_replication_slots')) {
      const slot = JSON.stringify(this.slot);
      return [this.slot === null ? [] : [{ slot }], 'slot'];
    }
    if (text.startsWith('CREATE_REPLICATION_SLOT'))
      return [[{ consistent_point: '0/64' }], text];
    if (text.startsWith('ALTER_REPLICATION_SLOT')) return [[], text];
    if (text.includes('puballtables')) return [[], 'self-feeding'];
    return [[{ pubname: 'p' }], 'publications'];
  }
}

class StubKeeper extends MemoryKeeper {
  constructor(
    private readonly log: string[],
    public row: StoredCheckpoint | null,
  ) {
    super();
  }

  override async load(): Promise<StoredCheckpoint | null> {
    this.log.push('checkpoint');
    return this.row;
  }

  override async confirm(): Promise<void> {
    this.log.push('confirm');
  }
}

interface Stage {
  readonly log: string[];
  readonly server: StubServer;
  readonly keeper: StubKeeper;
  readonly warnings: string[];
  readonly run: (
    sink?: Partial<ConsultedSink>,
    options?: Partial<PipelineOptions>,
  ) => Promise<StreamPlan>;
  readonly halt: (
    sink?: Partial<ConsultedSink>,
    options?: Partial<PipelineOptions>,
  ) => Promise<Halt>;
}

function stage(row: StoredCheckpoint | null = null): Stage {
  const log: string[] = [];
  const server = new StubServer(log);
  const keeper = new StubKeeper(log, row);
  const warnings: string[] = [];
  const run: Stage['run'] = (sink = {}, options = {}) => {
    const resolved = resolveOptions({
      connection: 'postgresql://db/shop',
      slotName: 'orders',
      publication: 'p',
      goForwardOnly: true,
      ...options,
    });
    const subject: ChainSubject = {
      pipeline: 'orders',
      options: resolved,
      capture: captureSetOf(resolved),
      sink: {
        name: 'Sink',
        checkpoint: { kind: 'keeper', keeper },
        ...sink,
      },
      unfinishedSlot: { consistentPoint: null },
      warning: (message) => warnings.push(message),
    };
    return runConnectChain(server, subject);
  };
  const halt: Stage['halt'] = async (sink, options) => {
    try {
      await run(sink, options);
    } catch (error) {
      if (error instanceof HaltError) return error.halt;
      throw error;
    }
    throw new Error('The chain did not halt.');
  };
  return { log, server, keeper, warnings, run, halt };
}

const STORED: StoredCheckpoint = {
  commitLsn: 90n,
  confirmedLsn: 100n,
  systemIdentifier: '7',
  timeline: 1,
};

describe('the order of the chain', () => {
  it('asks about the server before the checkpoint is read, and about the origin before it is stored', async () => {
    const { log, run } = stage();
    await run({
      sessionIdentity: async () => log.push('session identity'),
      slotOrigin: async () => log.push('slot origin'),
    });
    expect(log).toEqual([
      'identify',
      'session identity',
      'alive',
      'probe',
      'checkpoint',
      'publications',
      'claim',
      'slot',
      "CREATE_REPLICATION_SLOT orders LOGICAL pgoutput (SNAPSHOT 'nothing')",
      'slot origin',
      'alive',
      'confirm',
    ]);
  });
});

describe('session_identity/rejected', () => {
  it('tells the sink who the server is, and for whom it asks', async () => {
    const { run } = stage();
    const asked: unknown[] = [];
    await run({
      sessionIdentity: async (...given) => asked.push(...given),
    });
    expect(asked).toEqual([
      {
        systemIdentifier: '7',
        timeline: 1,
        flushedLsn: 1000n,
        database: 'shop',
      },
      { pipeline: 'orders', slotName: 'orders', publications: ['p'] },
    ]);
  });

  it('carries the error of the sink, and names its class alone', async () => {
    const { halt, log } = stage();
    const error = new TypeError('the secret');
    const found = await halt({
      sessionIdentity: () => Promise.reject(error),
    });
    expect(found.code).toBe('session_identity/rejected');
    expect(found.detail).toContain('TypeError');
    expect(JSON.stringify(found)).not.toContain('secret');
    expect(found.sinkError()).toBe(error);
    expect(log).toEqual(['identify']);
  });

  it('takes no answer but a promise for consent', async () => {
    const { halt, log } = stage();
    const found = await halt({ sessionIdentity: () => true });
    expect(found.code).toBe('session_identity/rejected');
    expect(found.detail).toContain('no promise');
    expect(log).toEqual(['identify']);
  });

  it.each<[string, TextRow[]]>([
    ['no row', []],
    [
      'two rows',
      [0, 1].map(() => ({
        systemid: '7',
        timeline: '1',
        xlogpos: '0/1',
        dbname: 'shop',
      })),
    ],
    [
      'no database',
      [{ systemid: '7', timeline: '1', xlogpos: '0/1', dbname: null }],
    ],
    [
      'no number',
      [{ systemid: 'x', timeline: '1', xlogpos: '0/1', dbname: 'shop' }],
    ],
    [
      'too large a number',
      [
        {
          systemid: '18446744073709551616',
          timeline: '1',
          xlogpos: '0/1',
          dbname: 'shop',
        },
      ],
    ],
    [
      'too large a timeline',
      [
        {
          systemid: '7',
          timeline: '4294967296',
          xlogpos: '0/1',
          dbname: 'shop',
        },
      ],
    ],
    [
      'a negative timeline',
      [{ systemid: '7', timeline: '-1', xlogpos: '0/1', dbname: 'shop' }],
    ],
    [
      'no position',
      [{ systemid: '7', timeline: '1', xlogpos: '0', dbname: 'shop' }],
    ],
  ])('halts on an answer with %s', async (_, identity) => {
    const { halt, server, log } = stage();
    server.identity = identity;
    const asked: unknown[] = [];
    const found = await halt({
      sessionIdentity: async (...given) => asked.push(given),
    });
    expect(found.code).toBe('session_identity/rejected');
    expect(asked).toEqual([]);
    expect(log).toEqual(['identify']);
  });
});

describe('the option failover', () => {
  it.each(['150018', '169999'])(
    'is refused on version %s before anything is created',
    async (version) => {
      const { halt, server, log } = stage();
      server.version = version;
      const found = await halt({}, { failover: true });
      expect(found.code).toBe('config/failover_unsupported');
      expect(found.detail).toContain(version);
      expect(log).toEqual(['identify', 'probe', 'checkpoint']);
    },
  );

  it('creates a slot that is synchronized', async () => {
    const { run, log, warnings } = stage();
    await run({}, { failover: true });
    expect(log).toContain(
      "CREATE_REPLICATION_SLOT orders LOGICAL pgoutput (SNAPSHOT 'nothing', FAILOVER true)",
    );
    expect(warnings).toEqual([]);
  });

  it.each<[string, Partial<SlotRow>, boolean, number]>([
    ['sets the property of a slot that lacks it', {}, true, 1],
    ['leaves one that has it', { failover: true }, true, 0],
    ['leaves one that somebody uses', { active: true }, true, 0],
    ['leaves every slot when it is off', {}, false, 0],
  ])('%s', async (_, columns, failover, times) => {
    const { run, server, log, warnings } = stage(STORED);
    server.slot = { ...SLOT, ...columns };
    await run({}, { failover });
    expect(
      log.filter(
        (step) => step === 'ALTER_REPLICATION_SLOT orders (FAILOVER true)',
      ),
    ).toHaveLength(times);
    expect(warnings).toHaveLength(times);
  });
});

describe('a synchronized slot on a standby', () => {
  it('halts, or waits where the replicas elect a leader', async () => {
    const { halt, run, server } = stage(STORED);
    server.inRecovery = 't';
    server.slot = { ...SLOT, synced: true };
    expect((await halt()).code).toBe('slot_synced_unpromoted');
    const waiting = run({}, { leaderElection: true });
    await expect(waiting).rejects.toThrow(ConnectionFault);
    await expect(waiting).rejects.toThrow(/not promoted/);
    server.inRecovery = 'f';
    await expect(run()).resolves.toMatchObject({ confirmedFlush: 100n });
  });
});

describe('the origin of a slot', () => {
  function asking(): { asked: unknown[]; sink: Partial<ConsultedSink> } {
    const asked: unknown[] = [];
    return {
      asked,
      sink: { slotOrigin: async (...given) => asked.push(...given) },
    };
  }
  const context = { pipeline: 'orders', slotName: 'orders' };

  it('is the consistent point of a new one', async () => {
    const { run } = stage();
    const { asked, sink } = asking();
    await run(sink);
    expect(asked).toEqual([100n, { ...context, reused: false }]);
  });

  it.each<[string, bigint | null, bigint | null, bigint]>([
    ['0/64', null, null, 100n],
    ['0/64', 90n, 120n, 120n],
    ['0/64', 130n, 120n, 130n],
    ['0/78', 90n, 120n, 120n],
  ])(
    'is the furthest of slot %s and checkpoint %s, %s',
    async (confirmed, commitLsn, confirmedLsn, origin) => {
      const empty = commitLsn === null && confirmedLsn === null;
      const { run, server } = stage(
        empty ? null : { ...STORED, commitLsn, confirmedLsn },
      );
      server.slot = { ...SLOT, confirmed_flush_lsn: confirmed };
      const { asked, sink } = asking();
      await run(sink);
      expect(asked).toEqual([origin, { ...context, reused: true }]);
    },
  );

  it('of a checkpoint method is the furthest too, and what the method says is kept', async () => {
    const { run, server } = stage();
    server.slot = { ...SLOT, confirmed_flush_lsn: '0/C8' };
    const { asked, sink } = asking();
    const plan = await run({
      ...sink,
      checkpoint: { kind: 'reader', read: async () => 150n },
    });
    expect(asked[0]).toBe(200n);
    expect(plan.command).toContain('LOGICAL 0/96 ');
  });

  it('that is rejected changes nothing', async () => {
    const { halt, server, log } = stage();
    server.slot = SLOT;
    const error = new Error('the secret');
    const found = await halt(
      { slotOrigin: () => Promise.reject(error) },
      { failover: true },
    );
    expect(found.code).toBe('slot_origin/slot_origin_rejected');
    expect(found.sinkError()).toBe(error);
    expect(JSON.stringify(found)).not.toContain('secret');
    expect(log.at(-1)).toBe('slot');
  });

  it('is not accepted without a promise', async () => {
    const { halt, log } = stage();
    const found = await halt({ slotOrigin: () => undefined });
    expect(found.code).toBe('slot_origin/slot_origin_rejected');
    expect(log).not.toContain('confirm');
  });

  it('that cannot be read is never invented (A16)', async () => {
    const { halt, run, server } = stage();
    const { asked, sink } = asking();
    server.slot = { ...SLOT, confirmed_flush_lsn: null };
    expect((await halt(sink)).code).toBe('slot_origin/slot_origin_unavailable');
    expect((await halt()).code).toBe('slot/not_usable');
    server.slot = { ...server.slot, active: true };
    await expect(run(sink)).rejects.toThrow(SlotHeldError);
    expect(asked).toEqual([]);
  });
});

describe('a slot that was moved', () => {
  const moved = { ...SLOT, confirmed_flush_lsn: '0/C8' };

  it('halts a mirror before its sink is asked', async () => {
    const { halt, server, log } = stage(STORED);
    server.slot = moved;
    const found = await halt({ slotOrigin: async () => log.push('asked') });
    expect(found.code).toBe('data_gap/slot_moved');
    expect(log).not.toContain('asked');
  });

  it('is what a log decides about', async () => {
    const { halt, run, server, log } = stage(STORED);
    server.slot = moved;
    const asked: unknown[] = [];
    const found = await halt({
      kind: 'appendLog',
      slotOrigin: (origin) => {
        asked.push(origin);
        return Promise.reject(new Error('gap'));
      },
    });
    expect(found.code).toBe('slot_origin/slot_origin_rejected');
    expect(asked).toEqual([200n]);
    expect(log).not.toContain('confirm');
    const plan = await run({ kind: 'appendLog', slotOrigin: async () => {} });
    expect(log.at(-1)).toBe('confirm');
    expect(plan.command).toContain('LOGICAL 0/C8 ');
  });

  it('halts a log that is not asked', async () => {
    const { halt, server } = stage(STORED);
    server.slot = moved;
    expect((await halt({ kind: 'appendLog' })).code).toBe(
      'data_gap/slot_moved',
    );
  });

  it('was moved by another instance when the checkpoint has followed', async () => {
    const { run, server, keeper } = stage(STORED);
    server.slot = moved;
    const load = keeper.load.bind(keeper);
    let reads = 0;
    keeper.load = async () => {
      reads += 1;
      if (reads === 2) keeper.row = { ...STORED, confirmedLsn: 200n };
      return load();
    };
    await expect(run()).resolves.toMatchObject({ confirmedFlush: 200n });
  });
});

describe('consent to go forward', () => {
  it('is asked of a mirror, not of a log', async () => {
    const { halt, run } = stage();
    const without = { goForwardOnly: false };
    expect((await halt({}, without)).code).toBe('config/go_forward_required');
    await run({ kind: 'appendLog', slotOrigin: async () => {} }, without);
  });
});

it('says that the timeline diverged rather than that the checkpoint is ahead', async () => {
  const { halt, server } = stage({ ...STORED, confirmedLsn: 5000n });
  expect((await halt()).code).toBe('data_gap/checkpoint_ahead_of_server');
  server.identity = [{ ...server.identity[0], timeline: '2' }];
  expect((await halt()).code).toBe('data_gap/timeline_diverged');
});

describe('the command', () => {
  it.each<[Partial<PipelineOptions>, string]>([
    [{}, "(proto_version '1', publication_names 'p')"],
    [
      { messages: true },
      "(proto_version '1', publication_names 'p', messages 'true')",
    ],
    [
      { streaming: {} },
      "(proto_version '2', publication_names 'p', streaming 'on')",
    ],
    [
      { messages: true, streaming: { spill: {} } },
      "(proto_version '2', publication_names 'p', messages 'true', streaming 'on')",
    ],
  ])('asks for what is wanted: %j', async (options, asked) => {
    const { run } = stage();
    const { command } = await run({}, options);
    expect(command).toBe(`START_REPLICATION SLOT orders LOGICAL 0/64 ${asked}`);
  });
});

describe('the database', () => {
  it.each<[PipelineOptions['streaming'], number | null]>([
    [null, null],
    [{}, null],
    [{ spill: {} }, 16_384],
  ])('is told where files are named after it: %j', async (streaming, oid) => {
    const { run } = stage();
    expect(await run({}, { streaming })).toMatchObject({ databaseOid: oid });
  });
});

describe('a standby', () => {
  it('that is behind the checkpoint is waited for', async () => {
    const { run, server } = stage({ ...STORED, confirmedLsn: 5000n });
    server.inRecovery = 't';
    await expect(run()).rejects.toThrow(ConnectionFault);
    await expect(run()).rejects.toThrow(/the standby is behind/);
  });

  it('tells no timeline of its positions, so that none is held against them', async () => {
    const { run, server, keeper } = stage(STORED);
    server.slot = SLOT;
    server.inRecovery = 't';
    const { context } = await run();
    expect(context.timeline).toBe(0);
    keeper.row = { ...STORED, timeline: context.timeline };
    server.inRecovery = 'f';
    server.identity = [{ ...server.identity[0], timeline: '2' }];
    expect((await run()).context.timeline).toBe(2);
  });
});
