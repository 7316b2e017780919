import { describe, expect, it } from 'vitest';
import type { Lsn } from '../engine/model/lsn.js';
import type {
  SchemaChange,
  SchemaChangeContext,
} from '../engine/model/schema-change.js';
import type {
  SessionIdentity,
  SessionIdentityContext,
} from '../engine/model/session-identity.js';
import type { SlotOriginContext } from '../engine/model/slot-origin.js';
import { definePipeline } from '../pipelines/define-pipeline.js';
import { membersOf, sinkKind, sinkPipeline } from '../sinks/sink.metadata.js';
import { OnSchemaChange } from './on-schema-change.decorator.js';
import { OnSessionIdentity } from './on-session-identity.decorator.js';
import { OnSlotOrigin } from './on-slot-origin.decorator.js';
import { ReplicantSink } from './replicant-sink.decorator.js';

describe('methods that are asked', () => {
  it('take what they are told, or less', () => {
    class Sink {
      @OnSessionIdentity()
      async server(
        _identity: SessionIdentity,
        _context: SessionIdentityContext,
      ): Promise<void> {}

      @OnSlotOrigin()
      async origin(_origin: Lsn, _context: SlotOriginContext): Promise<void> {}

      @OnSchemaChange()
      async schema(
        _change: SchemaChange,
        _context: SchemaChangeContext,
      ): Promise<void> {}
    }
    class Brief {
      @OnSessionIdentity()
      async server(): Promise<void> {}

      @OnSlotOrigin()
      protected async origin(_origin: Lsn): Promise<boolean> {
        return true;
      }

      @OnSchemaChange()
      async schema(_change: SchemaChange): Promise<void> {}
    }
    for (const sink of [Sink, Brief]) {
      expect(membersOf('sessionIdentity', sink)).toEqual([
        { property: 'server' },
      ]);
      expect(membersOf('slotOrigin', sink)).toEqual([{ property: 'origin' }]);
      expect(membersOf('schemaChange', sink)).toEqual([{ property: 'schema' }]);
    }
  });

  it('are rejected at compile time when they return no promise or take something else', () => {
    class Sink {
      // @ts-expect-error no promise
      @OnSessionIdentity()
      server(_identity: SessionIdentity): boolean {
        return true;
      }

      // @ts-expect-error the text of a position
      @OnSlotOrigin()
      async origin(_origin: string): Promise<void> {}

      // @ts-expect-error no promise
      @OnSchemaChange()
      schema(_change: SchemaChange): void {}
    }
    expect(membersOf('slotOrigin', Sink)).toHaveLength(1);
  });

  it('are methods of instances', () => {
    expect(() => {
      class Sink {
        @OnSlotOrigin()
        static async origin(): Promise<void> {}
      }
      return Sink;
    }).toThrow(
      'Sink.origin is static; @OnSlotOrigin() belongs on an instance member.',
    );
  });
});

describe('ReplicantSink', () => {
  it('makes a mirror unless it says otherwise', () => {
    @ReplicantSink()
    class Short {}
    @ReplicantSink('audit')
    class Named {}
    expect([sinkKind(Short), sinkKind(Named)]).toEqual(['mirror', 'mirror']);
  });

  it.each([
    [
      'the pipeline of the short form',
      'default',
      ReplicantSink({ kind: 'appendLog' }),
    ],
    [
      'a named pipeline',
      'audit',
      ReplicantSink('audit', { kind: 'appendLog' }),
    ],
    [
      'the pipeline of a handle',
      'audit',
      ReplicantSink(definePipeline('audit'), { kind: 'appendLog' }),
    ],
  ])('makes an append log of %s', (_, name, decorate) => {
    class Sink {}
    decorate(Sink);
    expect(sinkPipeline(Sink)).toBe(name);
    expect(sinkKind(Sink)).toBe('appendLog');
    expect(sinkKind(class extends Sink {})).toBe('appendLog');
  });
});
