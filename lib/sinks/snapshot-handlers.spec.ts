import { describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../../test/support/keeper.js';
import { unreachable } from '../../test/support/stub-pipeline.js';
import { Checkpoint } from '../decorators/checkpoint.decorator.js';
import { OnSnapshotComplete } from '../decorators/on-snapshot-complete.decorator.js';
import { OnSnapshot } from '../decorators/on-snapshot.decorator.js';
import { OnTransaction } from '../decorators/on-transaction.decorator.js';
import { SnapshotProgress } from '../decorators/snapshot-progress.decorator.js';
import { CheckpointTable } from '../engine/checkpoint/checkpoint-table.js';
import type { AttachedSink } from '../engine/deliver/sink.js';
import type { Lsn } from '../engine/model/lsn.js';
import type {
  SnapshotCheckpoint,
  SnapshotContext,
} from '../engine/model/snapshot.js';
import type { PipelineOptions } from '../engine/options/pipeline-options.js';
import { Pipeline } from '../engine/pipeline.js';
import { definePipeline } from '../pipelines/define-pipeline.js';
import { createSink } from './sink.factory.js';
import { SinkDefinitionError } from './sink-definition.error.js';

type Mode = 'none' | 'initial' | 'incremental' | 'lib' | 'lib-incremental';

const checkpointStore = { connection: unreachable.connection };
const incremental = { mode: 'incremental' } as const;
const MODES: Record<Mode, Partial<PipelineOptions>> = {
  none: {},
  initial: { goForwardOnly: false, snapshot: true },
  incremental: { goForwardOnly: false, snapshot: incremental },
  lib: { goForwardOnly: false, snapshot: true, checkpointStore },
  'lib-incremental': {
    goForwardOnly: false,
    snapshot: incremental,
    checkpointStore,
  },
};

function create(sinkClass: new () => object, mode: Mode): AttachedSink {
  return createSink(
    sinkClass,
    new sinkClass(),
    new Pipeline('default', { ...unreachable, ...MODES[mode] }),
  );
}

/** What a sink class is refused with. */
function refusal(sinkClass: new () => object, mode: Mode): string {
  try {
    create(sinkClass, mode);
  } catch (error) {
    expect(error).toBeInstanceOf(SinkDefinitionError);
    return error instanceof Error ? error.message : '';
  }
  return 'accepted';
}

class Transactions {
  @OnTransaction()
  async apply(): Promise<void> {}
}

/** A sink without checkpoint that takes snapshots. */
class Copies extends Transactions {
  readonly taken: unknown[] = [];

  @OnSnapshot()
  async copy(rows: readonly unknown[], context: object): Promise<void> {
    this.taken.push([rows, context]);
  }
}

class InTable extends Copies {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable(async () => []);
}

class InKeeper extends Copies {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();
}

class InProgressKeeper extends Copies {
  @Checkpoint()
  readonly checkpoints = new (class extends MemoryKeeper {
    async storeProgress(): Promise<void> {}
  })();
}

class InMethod extends Copies {
  @Checkpoint()
  async last(): Promise<Lsn | null> {
    return null;
  }
}

class CompleteInMethod extends InMethod {
  completed: SnapshotCheckpoint | null = null;

  @OnSnapshotComplete()
  async complete(checkpoint: SnapshotCheckpoint): Promise<void> {
    this.completed = checkpoint;
  }
}

class ProgressInMethod extends InMethod {
  @SnapshotProgress()
  async progress(): Promise<string | null> {
    return 'token';
  }
}

class CompleteInTable extends InTable {
  @OnSnapshotComplete()
  async complete(): Promise<void> {}
}

class ProgressInTable extends InTable {
  @SnapshotProgress()
  async progress(): Promise<string | null> {
    return null;
  }
}

class ProgressInKeeper extends InKeeper {
  @SnapshotProgress()
  async progress(): Promise<string | null> {
    return null;
  }
}

class CompleteWithoutCheckpoint extends Copies {
  @OnSnapshotComplete()
  async complete(): Promise<void> {}
}

class ProgressWithoutCheckpoint extends Copies {
  @SnapshotProgress()
  async progress(): Promise<string | null> {
    return null;
  }
}

class NoCopies extends Transactions {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();
}

const CONTEXT: SnapshotContext = {
  pipeline: 'default',
  slotName: 'orders',
  mode: 'incremental',
  relation: 'public.orders',
  snapshotLsn: 1n,
  firstForTable: false,
  complete: false,
  progress: 'token',
};

describe('a sink that takes snapshots', () => {
  it.each<[Mode, new () => object, string[]]>([
    ['initial', InTable, ['snapshot']],
    ['initial', CompleteInTable, ['snapshot', 'snapshotComplete']],
    ['initial', InKeeper, ['snapshot']],
    ['initial', CompleteInMethod, ['snapshot', 'snapshotComplete']],
    ['incremental', InTable, ['snapshot']],
    ['incremental', ProgressInTable, ['snapshot', 'snapshotProgress']],
    ['incremental', InProgressKeeper, ['snapshot']],
    ['incremental', ProgressInKeeper, ['snapshot', 'snapshotProgress']],
    ['incremental', ProgressInMethod, ['snapshot', 'snapshotProgress']],
    ['lib', Copies, ['snapshot']],
    ['lib-incremental', Copies, ['snapshot']],
    ['none', NoCopies, []],
  ])('is taken in the mode %s: %o', (mode, sinkClass, methods) => {
    const sink = create(sinkClass, mode);
    expect(
      Object.keys(sink).filter((name) => name.startsWith('snapshot')),
    ).toEqual(methods);
  });

  it('has its methods called on the instance, with all that they are told', async () => {
    const instance = new CompleteInMethod();
    const sink = createSink(
      CompleteInMethod,
      instance,
      new Pipeline('default', { ...unreachable, ...MODES.initial }),
    );
    await sink.snapshot?.([], CONTEXT);
    expect(instance.taken).toEqual([[[], CONTEXT]]);
    const checkpoint = {
      pipeline: 'default',
      slotName: 'orders',
      commitLsn: 1n,
      commitEndLsn: 2n,
    };
    await sink.snapshotComplete?.(checkpoint);
    expect(instance.completed).toBe(checkpoint);
    const { snapshotProgress } = create(ProgressInMethod, 'incremental');
    expect(
      await snapshotProgress?.({
        pipeline: 'default',
        slotName: 'orders',
        systemIdentifier: '1',
        timeline: 1,
      }),
    ).toBe('token');
  });

  it('is refused without a method for the rows', () => {
    const expected =
      'NoCopies has no @OnSnapshot(), but pipeline "default" has the option snapshot; put it on the method (rows, context) => Promise<void> that takes the rows that exist already, or remove the option.';
    expect(refusal(NoCopies, 'initial')).toBe(expected);
    expect(refusal(NoCopies, 'incremental')).toBe(expected);
    expect(refusal(Transactions, 'lib')).toContain('has no @OnSnapshot()');
  });

  it('is refused without the option', () => {
    const rest =
      'but pipeline "default" copies no rows that exist already; set its option snapshot, or remove the decorator.';
    expect(refusal(InTable, 'none')).toBe(
      `InTable.copy has @OnSnapshot(), ${rest}`,
    );
    class CompleteAlone extends NoCopies {
      @OnSnapshotComplete()
      async done(): Promise<void> {}
    }
    expect(refusal(CompleteAlone, 'none')).toBe(
      `CompleteAlone.done has @OnSnapshotComplete(), ${rest}`,
    );
    class ProgressAlone extends NoCopies {
      @SnapshotProgress()
      async progress(): Promise<string | null> {
        return null;
      }
    }
    expect(refusal(ProgressAlone, 'none')).toBe(
      `ProgressAlone.progress has @SnapshotProgress(), ${rest}`,
    );
  });

  it('is refused when nobody could store where the stream begins', () => {
    expect(refusal(InMethod, 'initial')).toBe(
      'InMethod has no @OnSnapshotComplete(), but its @Checkpoint() is a method, so the library cannot store where the stream begins behind the snapshot; put it on a method (checkpoint) => Promise<void> that stores checkpoint.commitLsn, or keep the position in a CheckpointTable.',
    );
  });

  it('is refused when it would be told of an end that there is not, or that the library stores', () => {
    expect(refusal(CompleteInTable, 'incremental')).toBe(
      'CompleteInTable.complete has @OnSnapshotComplete(), but the snapshot of pipeline "default" is incremental, and has no end at which the stream begins; remove the decorator; the last call of @OnSnapshot() has context.complete.',
    );
    expect(refusal(CompleteWithoutCheckpoint, 'lib')).toBe(
      'CompleteWithoutCheckpoint.complete has @OnSnapshotComplete(), but the library keeps the checkpoint of pipeline "default"; remove the decorator, or the option checkpointStore.',
    );
    expect(refusal(CompleteWithoutCheckpoint, 'lib-incremental')).toContain(
      'is incremental',
    );
  });

  it.each([InMethod, InKeeper])(
    'is refused when nobody could store the progress: %o',
    (sinkClass) => {
      expect(refusal(sinkClass, 'incremental')).toBe(
        `${sinkClass.name} has no @SnapshotProgress(), but its @Checkpoint() cannot keep the progress of a snapshot; put it on a method (context) => Promise<string | null> that reads the context.progress stored last, or keep the position in a CheckpointTable.`,
      );
    },
  );

  it('is refused when it would read progress that there is not, or that the library stores', () => {
    expect(refusal(ProgressInTable, 'initial')).toBe(
      `ProgressInTable.progress has @SnapshotProgress(), but the snapshot of pipeline "default" is initial, and begins anew when it is interrupted; remove the decorator, or set snapshot: { mode: 'incremental' }.`,
    );
    expect(refusal(ProgressWithoutCheckpoint, 'lib-incremental')).toBe(
      'ProgressWithoutCheckpoint.progress has @SnapshotProgress(), but the library keeps the checkpoint of pipeline "default"; remove the decorator, or the option checkpointStore.',
    );
    expect(refusal(ProgressWithoutCheckpoint, 'lib')).toContain('is initial');
  });

  it('is refused with two methods for the rows, with a property, and with the handle of another pipeline', () => {
    class Twice extends InTable {
      @OnSnapshot()
      async more(): Promise<void> {}
    }
    expect(refusal(Twice, 'initial')).toBe(
      'Twice has @OnSnapshot() on more than one member (copy, more); keep one.',
    );
    class Hidden extends ProgressInTable {
      constructor() {
        super();
        Object.defineProperty(this, 'progress', { value: 'token' });
      }
    }
    expect(refusal(Hidden, 'incremental')).toBe(
      'Hidden.progress has @SnapshotProgress() but is not a method.',
    );
    const audit = definePipeline('audit');
    class Elsewhere extends NoCopies {
      @OnSnapshot(audit)
      async copy(): Promise<void> {}
    }
    expect(refusal(Elsewhere, 'initial')).toBe(
      'Elsewhere.copy has @OnSnapshot("audit"), but Elsewhere is the sink of pipeline "default"; name the same pipeline in both.',
    );
  });
});
