import {
  ConfigurableModuleBuilder,
  type ConfigurableModuleAsyncOptions,
  type DynamicModule,
  type Provider,
} from '@nestjs/common';
import { ReplicantConfigError } from './engine/options/config-error.js';
import type {
  ConnectionOption,
  PipelineOptions,
} from './engine/options/pipeline-options.js';
import { Pipeline } from './engine/pipeline.js';
import {
  DEFAULT_PIPELINE,
  type PipelineName,
} from './pipelines/define-pipeline.js';
import { getPipelineToken } from './pipelines/get-pipeline-token.js';
import { ReplicantRegistry } from './pipelines/pipeline.registry.js';

/** Options of several pipelines by name. */
export interface PipelinesOptions {
  /** Connection of every pipeline that names none of its own. */
  connection?: ConnectionOption;
  pipelines: Record<
    string,
    Omit<PipelineOptions, 'connection'> & { connection?: ConnectionOption }
  >;
}

/** What {@link ReplicantModule} is configured with: one pipeline, which is then named `default`, or several by name. */
export type ReplicantModuleOptions = PipelineOptions | PipelinesOptions;

/** What a class given as `useClass` or `useExisting` implements. */
export interface ReplicantOptionsFactory {
  createReplicantOptions():
    Promise<ReplicantModuleOptions> | ReplicantModuleOptions;
}

/** Settings of the module itself, beside the options of its pipelines. */
export interface ReplicantModuleExtras {
  /**
   * Whether every module can inject pipelines without importing this one.
   *
   * @default true
   */
  isGlobal?: boolean;
  /** Further providers of the module, such as what only the options factory injects. */
  extraProviders?: Provider[];
}

/** Options of `ReplicantModule.forRootAsync`. */
export interface ReplicantModuleAsyncOptions
  extends
    ConfigurableModuleAsyncOptions<
      ReplicantModuleOptions,
      'createReplicantOptions'
    >,
    ReplicantModuleExtras {
  /**
   * Names or handles of the pipelines. They are static because injection tokens exist before a factory runs. When
   * omitted there is one pipeline, `default`, and the factory returns its options.
   */
  pipelines?: readonly PipelineName[];
}

/** What may stand beside `pipelines`. */
const MODULE_SETTINGS: ReadonlySet<string> = new Set([
  'isGlobal',
  'extraProviders',
]);

const PIPELINE_OPTIONS = Symbol.for('nestjs-replicant:pipeline-options');

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<ReplicantModuleOptions>({
    optionsInjectionToken: Symbol.for('nestjs-replicant:module-options'),
  })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createReplicantOptions')
    .setExtras<ReplicantModuleExtras>(
      { isGlobal: true, extraProviders: [] },
      (definition, { isGlobal, extraProviders }) => ({
        ...definition,
        global: isGlobal,
        providers: [...(definition.providers ?? []), ...(extraProviders ?? [])],
      }),
    )
    .build();

/** Adds a provider for each named pipeline, and the registry of them all. */
export function withPipelines(
  definition: DynamicModule,
  names: readonly string[],
): DynamicModule {
  if (new Set(names).size !== names.length) {
    throw new ReplicantConfigError(
      'pipelines',
      'names a pipeline twice; name each once.',
    );
  }
  const tokens = names.map((name) => getPipelineToken(name));
  return {
    ...definition,
    providers: [
      ...(definition.providers ?? []),
      {
        provide: PIPELINE_OPTIONS,
        inject: [MODULE_OPTIONS_TOKEN],
        useFactory: (options: ReplicantModuleOptions) =>
          optionsByName(options, names),
      },
      ...names.map((name) => ({
        provide: getPipelineToken(name),
        inject: [PIPELINE_OPTIONS],
        useFactory: (options: ReadonlyMap<string, PipelineOptions>) =>
          createPipeline(name, options),
      })),
      {
        provide: ReplicantRegistry,
        inject: tokens,
        useFactory: (...pipelines: Pipeline[]) =>
          new ReplicantRegistry(pipelines),
      },
    ],
    exports: [...(definition.exports ?? []), ...tokens, ReplicantRegistry],
  };
}

/** Names of the pipelines that options configure. */
export function pipelineNames(
  options: ReplicantModuleOptions,
): readonly string[] {
  return [...expand(options).keys()];
}

function createPipeline(
  name: string,
  options: ReadonlyMap<string, PipelineOptions>,
): Pipeline {
  const own = options.get(name);
  if (own === undefined) {
    throw new ReplicantConfigError(
      'pipelines',
      `has no entry for the registered pipeline "${name}"; present: ${[...options.keys()].join(', ')}. Return its options from the factory.`,
    );
  }
  return new Pipeline(name, own);
}

function optionsByName(
  options: ReplicantModuleOptions,
  names: readonly string[],
): ReadonlyMap<string, PipelineOptions> {
  const byName = expand(options);
  for (const name of byName.keys()) {
    if (!names.includes(name)) {
      throw new ReplicantConfigError(
        'pipelines',
        `has options for "${name}", which is not registered; registered: ${names.join(', ')}. Add it to forRootAsync({ pipelines: [...] }).`,
      );
    }
  }
  return byName;
}

function expand(
  options: ReplicantModuleOptions,
): ReadonlyMap<string, PipelineOptions> {
  if (!isObject(options)) {
    throw new ReplicantConfigError(
      'options',
      'must be an object; return it from the options factory.',
    );
  }
  if (!('pipelines' in options)) return new Map([[DEFAULT_PIPELINE, options]]);
  const { connection: shared, pipelines, ...rest } = options;
  if (Object.keys(rest).some((option) => !MODULE_SETTINGS.has(option))) {
    throw new ReplicantConfigError(
      'pipelines',
      'stands beside options of a single pipeline; move those into its entry.',
    );
  }
  if (!isObject(pipelines)) {
    throw new ReplicantConfigError(
      'pipelines',
      'must be an object of pipeline names and their options.',
    );
  }
  const byName = new Map(
    Object.entries(pipelines).map(([name, own]) => [
      name,
      withConnection(name, own, shared),
    ]),
  );
  refuseSharedSlots(byName);
  return byName;
}

/** Two pipelines on one slot would take turns, and each transaction would reach only one of the two sinks. */
function refuseSharedSlots(byName: ReadonlyMap<string, PipelineOptions>): void {
  const pipelines = [...byName];
  for (const [index, [name, { connection, slotName }]] of pipelines.entries()) {
    const other = pipelines
      .slice(0, index)
      .find(
        ([, each]) =>
          each.slotName === slotName && each.connection === connection,
      );
    if (other === undefined) continue;
    throw new ReplicantConfigError(
      'slotName',
      `is the same in the pipelines "${other[0]}" and "${name}"; give each a slot of its own.`,
    );
  }
}

function withConnection(
  name: string,
  own: PipelinesOptions['pipelines'][string],
  shared: ConnectionOption | undefined,
): PipelineOptions {
  if (!isObject(own))
    throw new ReplicantConfigError(
      'pipelines',
      `must hold an object for "${name}".`,
    );
  const connection = own.connection ?? shared;
  if (connection === undefined) {
    throw new ReplicantConfigError(
      'connection',
      `is missing for the pipeline "${name}", and there is no shared one.`,
    );
  }
  return { ...own, connection };
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
