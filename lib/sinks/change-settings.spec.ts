import { describe, expect, it } from 'vitest';
import { unreachable } from '../../test/support/stub-pipeline.js';
import { OnChange } from '../decorators/on-change.decorator.js';
import { Pipeline } from '../engine/pipeline.js';
import { createSink } from './sink.factory.js';
import { markMember } from './sink.metadata.js';

describe('@OnChange refuses', () => {
  const pipeline = new Pipeline('default', {
    ...unreachable,
    checkpointStore: { connection: unreachable.connection },
  });

  type Decorate = (
    prototype: object,
    property: string,
    descriptor: TypedPropertyDescriptor<() => Promise<void>>,
  ) => void;

  function refusal(...decorators: readonly Decorate[]): unknown {
    class Sink {
      async told(): Promise<void> {}
    }
    for (const decorate of decorators) decorate(Sink.prototype, 'told', {});
    try {
      return createSink(Sink, new Sink(), pipeline);
    } catch (error) {
      return String(error);
    }
  }

  it.each([
    '',
    'orders',
    '.orders',
    'public.',
    'public."Orders"',
    '"My Shop".orders',
  ])('a table named %j', (table) => {
    expect(refusal(OnChange(table))).toBe(
      "SinkDefinitionError: Sink.told has @OnChange() without a table as sinks see it: schema.table, without quotes, such as 'public.orders'.",
    );
  });

  it.each(['public.Orders', 'My Shop.a.b', 'public.o"clock', 'ä.ö'])(
    'no table named %j',
    (table) => {
      expect(refusal(OnChange(table))).toHaveProperty('transaction');
    },
  );

  it.each([[], ['upsert'], ['insert', 'upsert'], 'insert', null])(
    'an "on" of %j',
    (on) => {
      const options: object = { on };
      expect(refusal(OnChange('public.t', options))).toBe(
        `SinkDefinitionError: Sink.told has @OnChange('public.t') whose "on" is no list of insert, update, delete, truncate; name at least one of them, or leave "on" out to take all.`,
      );
    },
  );

  it('a setting that it does not know, which would take all operations', () => {
    const settings = { relation: 'public.t', op: ['insert'] };
    expect(
      refusal((prototype, property) =>
        markMember('change', prototype, { property, settings }),
      ),
    ).toBe(
      `SinkDefinitionError: Sink.told has @OnChange('public.t') with the setting "op", which is not known; "on" is the only one.`,
    );
  });

  it('an operation that is named twice', () => {
    const twice = (op: string): string =>
      `SinkDefinitionError: Sink.told has @OnChange('public.t') more than once for ${op}, and would be called twice; name it once.`;
    expect(
      refusal(OnChange('public.t', { on: ['insert', 'delete', 'delete'] })),
    ).toBe(twice('delete'));
    expect(
      refusal(
        OnChange('public.t', { on: ['insert', 'update'] }),
        OnChange('public.u', { on: ['update'] }),
        OnChange('public.t', { on: ['update'] }),
      ),
    ).toBe(twice('update'));
    expect(refusal(OnChange('public.t'), OnChange('public.t'))).toBe(
      twice('insert'),
    );
  });
});
