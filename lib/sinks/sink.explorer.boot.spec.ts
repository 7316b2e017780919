import {
  Injectable,
  Module,
  Scope,
  type ModuleMetadata,
  type Type,
} from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../../test/support/keeper.js';
import { StubPipeline, unreachable } from '../../test/support/stub-pipeline.js';
import { Checkpoint } from '../decorators/checkpoint.decorator.js';
import { OnTransaction } from '../decorators/on-transaction.decorator.js';
import { ReplicantSink } from '../decorators/replicant-sink.decorator.js';
import type { Lsn } from '../engine/model/lsn.js';
import type { Transaction } from '../engine/model/transaction.js';
import { definePipeline } from '../pipelines/define-pipeline.js';
import { getPipelineToken } from '../pipelines/get-pipeline-token.js';
import { ReplicantModule } from '../replicant.module.js';
import { CheckpointTable } from '../engine/checkpoint/checkpoint-table.js';

const transaction: Transaction = {
  pipeline: 'default',
  slotName: 'orders',
  xid: 7,
  commitLsn: 16n,
  commitEndLsn: 32n,
  commitTime: new Date(0),
  commitTimeMicros: 0n,
  changes: [],
  messages: [],
};

@ReplicantSink()
class Totals {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();
  readonly seen: number[] = [];

  @OnTransaction()
  async apply(tx: Transaction): Promise<void> {
    this.seen.push(tx.xid);
  }
}

describe('SinkExplorer', () => {
  const open: TestingModule[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((app) => app.close()));
  });

  async function boot(
    metadata: ModuleMetadata,
    stub = new StubPipeline('default'),
  ): Promise<TestingModule> {
    const app = await Test.createTestingModule({
      ...metadata,
      imports: [
        ReplicantModule.forRoot({ ...unreachable, autoStart: false }),
        ...(metadata.imports ?? []),
      ],
    })
      .overrideProvider(getPipelineToken())
      .useValue(stub)
      .compile();
    await app.init();
    open.push(app);
    return app;
  }

  function refusal(metadata: ModuleMetadata): Promise<unknown> {
    return boot(metadata).then(
      () => 'started',
      (error: unknown) => String(error),
    );
  }

  function providing(
    ...providers: NonNullable<ModuleMetadata['providers']>
  ): Type {
    @Module({ providers })
    class Feature {}
    return Feature;
  }

  describe('finds a sink', () => {
    it('provided as a class, and calls its method on the instance', async () => {
      const stub = new StubPipeline('default');
      const app = await boot({ providers: [Totals] }, stub);
      await stub.sink?.transaction?.(transaction);
      expect(app.get(Totals).seen).toEqual([7]);
      expect(stub.sink?.name).toBe('Totals');
      expect(stub.sink?.checkpoint).toEqual({
        kind: 'keeper',
        keeper: app.get(Totals).checkpoints,
      });
    });

    it('provided by a factory, under another token', async () => {
      const stub = new StubPipeline('default');
      await boot(
        {
          providers: [
            { provide: 'SINK', useFactory: async () => new Totals() },
          ],
        },
        stub,
      );
      expect(stub.sink?.name).toBe('Totals');
    });

    it('provided as a value', async () => {
      const stub = new StubPipeline('default');
      const totals = new Totals();
      await boot({ providers: [{ provide: 'SINK', useValue: totals }] }, stub);
      await stub.sink?.transaction?.(transaction);
      expect(totals.seen).toEqual([7]);
    });

    it('in a module of its own', async () => {
      const stub = new StubPipeline('default');
      await boot({ imports: [providing(Totals)] }, stub);
      expect(stub.sink?.name).toBe('Totals');
    });

    it('once, when an alias and a factory hand it on', async () => {
      const stub = new StubPipeline('default');
      await boot(
        {
          providers: [
            Totals,
            { provide: 'ALIAS', useExisting: Totals },
            {
              provide: 'HANDED_ON',
              useFactory: (totals: Totals) => totals,
              inject: [Totals],
            },
          ],
        },
        stub,
      );
      expect(stub.calls.filter((call) => call === 'attach')).toHaveLength(1);
    });

    it('that inherits its decorators, and calls the method that overrides the decorated one', async () => {
      abstract class Base {
        @Checkpoint()
        readonly checkpoints = new MemoryKeeper();

        @OnTransaction()
        async apply(_tx: Transaction): Promise<string> {
          return 'base';
        }
      }
      @ReplicantSink()
      class Marked extends Base {}
      class Derived extends Marked {
        override async apply(_tx: Transaction): Promise<string> {
          return 'derived';
        }
      }
      const stub = new StubPipeline('default');
      await boot({ providers: [Derived] }, stub);
      expect(stub.sink?.name).toBe('Derived');
      expect(await stub.sink?.transaction?.(transaction)).toBe('derived');
    });

    it('that injects a transient provider, such as a logger', async () => {
      @Injectable({ scope: Scope.TRANSIENT })
      class Log {}
      @ReplicantSink()
      class Logging extends Totals {
        constructor(readonly log: Log) {
          super();
        }
      }
      const stub = new StubPipeline('default');
      const app = await boot({ providers: [Log, Logging] }, stub);
      expect(app.get(Logging).log).toBeInstanceOf(Log);
      expect(stub.sink?.name).toBe('Logging');
    });

    it('whose checkpoint is a method, and calls it on the instance', async () => {
      @ReplicantSink()
      class Reading {
        private readonly last = 5n;

        @Checkpoint()
        async position(): Promise<Lsn | null> {
          return this.last;
        }

        @OnTransaction()
        async apply(_tx: Transaction): Promise<void> {}
      }
      const stub = new StubPipeline('default');
      await boot({ providers: [Reading] }, stub);
      const checkpoint = stub.sink?.checkpoint;
      expect(checkpoint?.kind).toBe('reader');
      if (checkpoint?.kind !== 'reader') return;
      const context = {
        pipeline: 'default',
        slotName: 'orders',
        systemIdentifier: '1',
        timeline: 1,
      };
      expect(await checkpoint.read(context)).toBe(5n);
    });

    it('and binds its checkpoint table to pipeline and slot, once', async () => {
      const app = await boot({ providers: [Totals] });
      expect(app.get(Totals).checkpoints.bound).toEqual([
        { pipeline: 'default', slotName: 'orders' },
      ]);
    });

    it('whose checkpoint is a CheckpointTable', async () => {
      @ReplicantSink()
      class Real {
        @Checkpoint()
        readonly checkpoints = new CheckpointTable(async () => []);

        @OnTransaction()
        async apply(_tx: Transaction): Promise<void> {}
      }
      const stub = new StubPipeline('default');
      await boot({ providers: [Real] }, stub);
      expect(stub.sink?.checkpoint?.kind).toBe('keeper');
    });
  });

  describe('refuses', () => {
    it('a pipeline without a sink', async () => {
      expect(await refusal({})).toBe(
        'SinkDefinitionError: Pipeline "default" has no sink; list a class with @ReplicantSink() among the providers of a module (request-scoped providers are not considered).',
      );
    });

    it('two sinks for one pipeline', async () => {
      @ReplicantSink()
      class Copy extends Totals {}
      expect(
        await refusal({ imports: [providing(Totals), providing(Copy)] }),
      ).toMatch(
        /^SinkDefinitionError: Pipeline "default" has two sinks, (Totals \(Feature\) and Copy|Copy \(Feature\) and Totals) \(Feature\); keep one, or give the other a pipeline of its own\.$/,
      );
    });

    it('a class that two modules provide', async () => {
      expect(
        await refusal({ imports: [providing(Totals), providing(Totals)] }),
      ).toBe(
        'SinkDefinitionError: Totals is provided twice (Feature, Feature), so each transaction would be applied twice; provide it in one module, export it there, and import that module.',
      );
    });

    it('a sink of an unknown pipeline', async () => {
      @ReplicantSink('order')
      class Typo extends Totals {}
      expect(await refusal({ imports: [providing(Totals, Typo)] })).toBe(
        'SinkDefinitionError: Typo (Feature) is the sink of the unknown pipeline "order"; known: default. Correct the name in @ReplicantSink, or add the pipeline to ReplicantModule.',
      );
    });

    it.each([Scope.REQUEST, Scope.TRANSIENT])(
      'a sink of scope %i',
      async (scope) => {
        class Scoped extends Totals {}
        Injectable({ scope })(Scoped);
        expect(await refusal({ imports: [providing(Scoped)] })).toContain(
          'Scoped (Feature) is transient or request-scoped, itself or through what it injects; a sink must be a singleton',
        );
      },
    );

    it('a sink with a request-scoped provider deep among its dependencies', async () => {
      @Injectable({ scope: Scope.REQUEST })
      class PerRequest {}
      @Injectable()
      class Repository {
        constructor(readonly deep: PerRequest) {}
      }
      @ReplicantSink()
      class Bubbling extends Totals {
        constructor(readonly repository: Repository) {
          super();
        }
      }
      expect(
        await refusal({
          imports: [providing(PerRequest, Repository, Bubbling)],
        }),
      ).toContain('Bubbling (Feature) is transient or request-scoped');
    });

    it('a sink without @OnTransaction()', async () => {
      @ReplicantSink()
      class Idle {
        @Checkpoint()
        readonly checkpoints = new MemoryKeeper();
      }
      expect(await refusal({ providers: [Idle] })).toBe(
        'SinkDefinitionError: Idle has no @OnTransaction(); put it on the method that applies a transaction.',
      );
    });

    it('a sink with two handlers', async () => {
      @ReplicantSink()
      class Twice extends Totals {
        @OnTransaction()
        async other(_tx: Transaction): Promise<void> {}
      }
      expect(await refusal({ providers: [Twice] })).toBe(
        'SinkDefinitionError: Twice has @OnTransaction() on more than one member (apply, other); keep one.',
      );
    });

    it('a handler for another pipeline than the class', async () => {
      @ReplicantSink()
      class Mixed {
        @Checkpoint()
        readonly checkpoints = new MemoryKeeper();

        @OnTransaction(definePipeline('audit'))
        async apply(_tx: Transaction): Promise<void> {}
      }
      expect(await refusal({ providers: [Mixed] })).toContain(
        'Mixed.apply has @OnTransaction("audit"), but Mixed is the sink of pipeline "default"',
      );
    });

    it('a sink without @Checkpoint()', async () => {
      @ReplicantSink()
      class Forgetful {
        @OnTransaction()
        async apply(_tx: Transaction): Promise<void> {}
      }
      expect(await refusal({ providers: [Forgetful] })).toContain(
        'Forgetful has no @Checkpoint(); put it on a property',
      );
    });

    it('a sink with two checkpoints', async () => {
      @ReplicantSink()
      class Torn extends Totals {
        @Checkpoint()
        async last(): Promise<Lsn | null> {
          return null;
        }
      }
      expect(await refusal({ providers: [Torn] })).toContain(
        'Torn has @Checkpoint() on more than one member (checkpoints, last); keep one.',
      );
    });

    it.each([
      undefined,
      null,
      7,
      {},
      { load: async (): Promise<null> => null },
    ])('a @Checkpoint() property that holds %s', async (held) => {
      @ReplicantSink()
      class Wrong {
        @Checkpoint()
        readonly position = held;

        @OnTransaction()
        async apply(_tx: Transaction): Promise<void> {}
      }
      expect(await refusal({ providers: [Wrong] })).toContain(
        'Wrong.position has @Checkpoint() but holds neither a CheckpointTable nor a method',
      );
    });

    it('a module that is configured twice', async () => {
      expect(
        await refusal({
          imports: [
            ReplicantModule.forRoot({
              connection: 'postgres://none',
              pipelines: {},
            }),
          ],
          providers: [Totals],
        }),
      ).toContain('ReplicantModule is configured twice in this application');
    });

    it('one CheckpointTable for two pipelines, naming the sink', async () => {
      const shared = new CheckpointTable(async () => []);
      class Sharing {
        @Checkpoint()
        readonly checkpoints = shared;

        @OnTransaction()
        async apply(_tx: Transaction): Promise<void> {}
      }
      @ReplicantSink('a')
      class A extends Sharing {}
      @ReplicantSink('b')
      class B extends Sharing {}
      const app = await Test.createTestingModule({
        imports: [
          ReplicantModule.forRoot({
            pipelines: {
              a: { ...unreachable, slotName: 'a', autoStart: false },
              b: { ...unreachable, slotName: 'b', autoStart: false },
            },
          }),
        ],
        providers: [A, B],
      }).compile();
      await expect(app.init()).rejects.toThrow(
        /^B\.checkpoints: One CheckpointTable serves one pipeline/,
      );
    });
  });
});
