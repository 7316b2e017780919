import { describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../../test/support/keeper.js';
import { unreachable } from '../../test/support/stub-pipeline.js';
import { Checkpoint } from '../decorators/checkpoint.decorator.js';
import { OnSchemaChange } from '../decorators/on-schema-change.decorator.js';
import { OnSessionIdentity } from '../decorators/on-session-identity.decorator.js';
import { OnSlotOrigin } from '../decorators/on-slot-origin.decorator.js';
import { OnTransaction } from '../decorators/on-transaction.decorator.js';
import { ReplicantSink } from '../decorators/replicant-sink.decorator.js';
import type { AttachedSink } from '../engine/deliver/sink.js';
import type { Lsn } from '../engine/model/lsn.js';
import { Pipeline } from '../engine/pipeline.js';
import { createSink } from './sink.factory.js';

class Plain {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();

  @OnTransaction()
  async apply(): Promise<void> {}
}

function create(sinkClass: new () => object): AttachedSink {
  return createSink(
    sinkClass,
    new sinkClass(),
    new Pipeline('default', unreachable),
  );
}

describe('createSink', () => {
  it('makes a mirror that is asked nothing of a class that says no more', () => {
    const sink = create(Plain);
    expect(sink.kind).toBe('mirror');
    expect(sink).not.toHaveProperty('sessionIdentity');
    expect(sink).not.toHaveProperty('slotOrigin');
    expect(sink).not.toHaveProperty('schemaChange');
  });

  it('calls the methods that are asked on the instance, with all that they are told', async () => {
    class Asked extends Plain {
      readonly #last = 5n;

      @OnSessionIdentity()
      async server(): Promise<string> {
        return 'server';
      }

      @OnSlotOrigin()
      async origin(
        origin: Lsn,
        { reused }: { readonly reused: boolean },
      ): Promise<string> {
        return `${origin - this.#last} ${reused}`;
      }

      @OnSchemaChange()
      async schema(): Promise<string> {
        return 'schema';
      }
    }
    const sink = create(Asked);
    const context = { pipeline: 'default', slotName: 's', reused: true };
    expect(await sink.slotOrigin?.(7n, context)).toBe('2 true');
    expect(sink.sessionIdentity).toBeDefined();
    expect(sink.schemaChange).toBeDefined();
  });

  it('refuses two methods for one question', () => {
    class Twice extends Plain {
      @OnSlotOrigin()
      async one(): Promise<void> {}

      @OnSlotOrigin()
      async two(): Promise<void> {}
    }
    expect(() => create(Twice)).toThrow(
      'Twice has @OnSlotOrigin() on more than one member (one, two); keep one.',
    );
  });

  it('refuses a decorated member that is no method any more', () => {
    class Base extends Plain {
      @OnSchemaChange()
      async schema(): Promise<void> {}
    }
    class Hidden extends Base {
      constructor() {
        super();
        Object.defineProperty(this, 'schema', { value: 1 });
      }
    }
    expect(() => create(Hidden)).toThrow(
      'Hidden.schema has @OnSchemaChange() but is not a method.',
    );
  });

  it('refuses an append log that cannot be asked about the position of its slot', () => {
    @ReplicantSink({ kind: 'appendLog' })
    class Log extends Plain {}
    expect(() => create(Log)).toThrow(
      "Log is of kind 'appendLog' and has no @OnSlotOrigin()",
    );
    class Whole extends Log {
      @OnSlotOrigin()
      async origin(): Promise<void> {}
    }
    expect(create(Whole).kind).toBe('appendLog');
  });
});
