import {
  Inject,
  Injectable,
  Module,
  type DynamicModule,
  type ModuleMetadata,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../test/support/keeper.js';
import { unreachable } from '../test/support/stub-pipeline.js';
import { waitFor } from '../test/support/wait-for.js';
import { Checkpoint } from './decorators/checkpoint.decorator.js';
import { OnTransaction } from './decorators/on-transaction.decorator.js';
import { ReplicantSink } from './decorators/replicant-sink.decorator.js';
import type { Transaction } from './engine/model/transaction.js';
import { Pipeline } from './engine/pipeline.js';
import { definePipeline } from './pipelines/define-pipeline.js';
import { getPipelineToken } from './pipelines/get-pipeline-token.js';
import { InjectPipeline } from './pipelines/inject-pipeline.js';
import { ReplicantRegistry } from './pipelines/pipeline.registry.js';
import { ReplicantModule } from './replicant.module.js';
import type {
  ReplicantModuleAsyncOptions,
  ReplicantModuleOptions,
  ReplicantOptionsFactory,
} from './replicant.module-definition.js';

class Base {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();

  @OnTransaction()
  async apply(_tx: Transaction): Promise<void> {}
}
@ReplicantSink()
class DefaultSink extends Base {}
@ReplicantSink('orders')
class OrdersSink extends Base {}
@ReplicantSink('audit')
class AuditSink extends Base {}

const single: ReplicantModuleOptions = { ...unreachable, autoStart: false };
const { connection, ...unconnected } = unreachable;
const several = {
  connection,
  pipelines: {
    orders: { ...unconnected, autoStart: false },
    audit: {
      ...unconnected,
      slotName: 'audit',
      connection: 'postgres://audit',
      autoStart: false,
    },
  },
} satisfies ReplicantModuleOptions;

async function boot(metadata: ModuleMetadata): Promise<ReplicantRegistry> {
  const app = await Test.createTestingModule(metadata).compile();
  await app.init();
  await app.close();
  return app.get(ReplicantRegistry, { strict: false });
}

function names(registry: ReplicantRegistry): readonly string[] {
  return registry.all().map(({ name }) => name);
}

describe('ReplicantModule.forRoot', () => {
  it('configures one pipeline, named default', async () => {
    const registry = await boot({
      imports: [ReplicantModule.forRoot(single)],
      providers: [DefaultSink],
    });
    expect(names(registry)).toEqual(['default']);
    expect(registry.get().options.slotName).toBe('orders');
  });

  it('configures several pipelines, with a shared connection unless one has its own', async () => {
    const asked: string[] = [];
    const via = (whose: string) => () => {
      asked.push(whose);
      return { host: '127.0.0.1', port: 1, user: 'nobody', database: 'none' };
    };
    const { orders, audit } = several.pipelines;
    const registry = await boot({
      imports: [
        ReplicantModule.forRoot({
          connection: via('shared'),
          pipelines: { orders, audit: { ...audit, connection: via('own') } },
        }),
      ],
      providers: [OrdersSink, AuditSink],
    });
    expect(names(registry)).toEqual(['orders', 'audit']);
    registry.get('orders').start();
    await waitFor(() => asked.length === 1);
    registry.get('audit').start();
    await waitFor(() => asked.length === 2);
    await Promise.all(registry.all().map((pipeline) => pipeline.stop()));
    expect(asked).toEqual(['shared', 'own']);
  });

  it('refuses two pipelines on one slot of one server', async () => {
    const { orders, audit } = several.pipelines;
    const shared = { orders, audit: { ...audit, slotName: orders.slotName } };
    expect(() =>
      ReplicantModule.forRoot({
        connection,
        pipelines: { orders, audit: orders },
      }),
    ).toThrow(
      'Option slotName: is the same in the pipelines "orders" and "audit"',
    );
    const registry = await boot({
      imports: [ReplicantModule.forRoot({ connection, pipelines: shared })],
      providers: [OrdersSink, AuditSink],
    });
    expect(names(registry)).toEqual(['orders', 'audit']);
  });

  it('injects pipelines by name and by handle, in any module', async () => {
    const handle = definePipeline('audit');
    @Injectable()
    class User {
      constructor(
        @InjectPipeline('orders') readonly orders: Pipeline,
        @InjectPipeline(handle) readonly audit: Pipeline,
        readonly registry: ReplicantRegistry,
      ) {}
    }
    @Module({ providers: [User] })
    class Feature {}
    const app = await Test.createTestingModule({
      imports: [ReplicantModule.forRoot(several), Feature],
      providers: [OrdersSink, AuditSink],
    }).compile();
    const user = app.get(User, { strict: false });
    expect(user.orders).toBeInstanceOf(Pipeline);
    expect(user.orders).toBe(app.get(getPipelineToken('orders')));
    expect(user.audit).toBe(user.registry.get(handle));
    await app.close();
  });

  it('is seen by its importers alone with isGlobal: false', async () => {
    @Injectable()
    class User {
      constructor(@InjectPipeline() readonly pipeline: Pipeline) {}
    }
    @Module({ providers: [User] })
    class Apart {}
    const replicant = ReplicantModule.forRoot({ ...single, isGlobal: false });
    await expect(
      boot({ imports: [replicant, Apart], providers: [DefaultSink] }),
    ).rejects.toThrow('ReplicantPipeline(default)');
    await boot({ imports: [replicant], providers: [DefaultSink, User] });
  });

  it('refuses options that cannot work while the application starts', async () => {
    const imports = [
      ReplicantModule.forRoot({ ...single, slotName: 'No Slot' }),
    ];
    await expect(boot({ imports, providers: [DefaultSink] })).rejects.toThrow(
      'Option slotName: ',
    );
  });

  it('refuses a pipeline without connection', () => {
    expect(() =>
      ReplicantModule.forRoot({ pipelines: { orders: unconnected } }),
    ).toThrow(
      'Option connection: is missing for the pipeline "orders", and there is no shared one.',
    );
  });

  it('refuses options of one pipeline beside several', () => {
    expect(() =>
      ReplicantModule.forRoot({ ...several, autoStart: false }),
    ).toThrow('Option pipelines: stands beside options of a single pipeline');
  });
});

describe('ReplicantModule.forRootAsync', () => {
  const OPTIONS = Symbol('options');

  @Injectable()
  class OptionsFactory implements ReplicantOptionsFactory {
    createReplicantOptions(): ReplicantModuleOptions {
      return single;
    }
  }

  @Module({
    providers: [OptionsFactory, { provide: OPTIONS, useValue: single }],
    exports: [OptionsFactory, OPTIONS],
  })
  class ConfigModule {}

  const styles: Record<string, ReplicantModuleAsyncOptions> = {
    useFactory: { useFactory: () => single },
    'useFactory with a promise': { useFactory: async () => single },
    'useFactory with inject and imports': {
      imports: [ConfigModule],
      inject: [OPTIONS],
      useFactory: (options: ReplicantModuleOptions) => options,
    },
    'useFactory with extraProviders': {
      extraProviders: [{ provide: OPTIONS, useValue: single }],
      inject: [OPTIONS],
      useFactory: (options: ReplicantModuleOptions) => options,
    },
    useClass: { useClass: OptionsFactory },
    useExisting: { imports: [ConfigModule], useExisting: OptionsFactory },
  };

  it.each(Object.entries(styles))(
    'takes options from %s',
    async (_style, options) => {
      const registry = await boot({
        imports: [ReplicantModule.forRootAsync(options)],
        providers: [DefaultSink],
      });
      expect(registry.get().options.slotName).toBe('orders');
    },
  );

  it('takes several pipelines, named by strings and handles', async () => {
    const registry = await boot({
      imports: [
        ReplicantModule.forRootAsync({
          pipelines: ['orders', definePipeline('audit')],
          useFactory: () => several,
        }),
      ],
      providers: [OrdersSink, AuditSink],
    });
    expect(names(registry)).toEqual(['orders', 'audit']);
    expect(registry.get('audit').options.slotName).toBe('audit');
  });

  it('is seen by its importers alone with isGlobal: false', () => {
    const global = (definition: DynamicModule): boolean | undefined =>
      definition.global;
    expect(
      global(ReplicantModule.forRootAsync({ useFactory: () => single })),
    ).toBe(true);
    expect(
      global(
        ReplicantModule.forRootAsync({
          useFactory: () => single,
          isGlobal: false,
        }),
      ),
    ).toBe(false);
  });

  it('refuses a registered name without options', async () => {
    const imports = [
      ReplicantModule.forRootAsync({
        pipelines: ['orders', 'audit', 'mail'],
        useFactory: () => several,
      }),
    ];
    await expect(boot({ imports })).rejects.toThrow(
      'Option pipelines: has no entry for the registered pipeline "mail"; present: orders, audit.',
    );
  });

  it('refuses options for a name that is not registered', async () => {
    const imports = [
      ReplicantModule.forRootAsync({
        pipelines: ['orders'],
        useFactory: () => several,
      }),
    ];
    await expect(boot({ imports })).rejects.toThrow(
      'Option pipelines: has options for "audit", which is not registered; registered: orders.',
    );
  });

  it('refuses several pipelines when no names were registered', async () => {
    const imports = [
      ReplicantModule.forRootAsync({ useFactory: () => several }),
    ];
    await expect(boot({ imports })).rejects.toThrow(
      'has options for "orders", which is not registered',
    );
  });

  it('refuses a name that is registered twice', () => {
    expect(() =>
      ReplicantModule.forRootAsync({
        pipelines: ['orders', definePipeline('orders')],
        useFactory: () => several,
      }),
    ).toThrow('Option pipelines: names a pipeline twice; name each once.');
  });

  it('refuses a factory that returns nothing', async () => {
    const imports = [
      ReplicantModule.forRootAsync({
        extraProviders: [{ provide: OPTIONS, useValue: undefined }],
        inject: [OPTIONS],
        useFactory: (nothing: ReplicantModuleOptions) => nothing,
      }),
    ];
    await expect(boot({ imports })).rejects.toThrow(
      'Option options: must be an object',
    );
  });
});

describe('ReplicantRegistry', () => {
  it('throws for a name that it does not know', async () => {
    const registry = await boot({
      imports: [ReplicantModule.forRoot(several)],
      providers: [OrdersSink, AuditSink],
    });
    expect(() => registry.get('order')).toThrow(
      'There is no pipeline "order"; known: orders, audit.',
    );
    expect([registry.has('orders'), registry.has('order')]).toEqual([
      true,
      false,
    ]);
  });
});

describe('two applications in one process', () => {
  it('have pipelines and sinks of their own', async () => {
    @Module({
      imports: [ReplicantModule.forRoot(single)],
      providers: [DefaultSink],
    })
    class App {
      constructor(
        @InjectPipeline() readonly pipeline: Pipeline,
        @Inject(DefaultSink) readonly sink: DefaultSink,
      ) {}
    }
    const [one, two] = await Promise.all([
      NestFactory.createApplicationContext(App, { logger: false }),
      NestFactory.createApplicationContext(App, { logger: false }),
    ]);
    expect(one.get(App).pipeline).not.toBe(two.get(App).pipeline);
    expect(one.get(App).sink.checkpoints.bound).toHaveLength(1);
    expect(two.get(App).sink.checkpoints.bound).toHaveLength(1);
    await one.close();
    await two.close();
  });
});
