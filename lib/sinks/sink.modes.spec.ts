import { describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../../test/support/keeper.js';
import { unreachable } from '../../test/support/stub-pipeline.js';
import { Checkpoint } from '../decorators/checkpoint.decorator.js';
import { OnBatch } from '../decorators/on-batch.decorator.js';
import { OnChange } from '../decorators/on-change.decorator.js';
import { OnTransaction } from '../decorators/on-transaction.decorator.js';
import type { AttachedSink } from '../engine/deliver/sink.js';
import type { PipelineOptions } from '../engine/options/pipeline-options.js';
import { Pipeline } from '../engine/pipeline.js';
import { definePipeline } from '../pipelines/define-pipeline.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import { createSink } from './sink.factory.js';

type Mode = 'transaction' | 'batch' | 'lib' | 'lib-batch';

const { connection } = unreachable;
const MODES: Record<Mode, Partial<PipelineOptions>> = {
  transaction: {},
  batch: { batchDelivery: {} },
  lib: { checkpointStore: { connection } },
  'lib-batch': { checkpointStore: { connection, batch: {} } },
};

function create(sinkClass: new () => object, mode: Mode): AttachedSink {
  return createSink(
    sinkClass,
    new sinkClass(),
    new Pipeline('default', { ...unreachable, ...MODES[mode] }),
  );
}

class Nothing {}

class Keeping {
  @Checkpoint()
  readonly checkpoints = new MemoryKeeper();
}

class Transactions {
  @OnTransaction()
  async apply(): Promise<void> {}
}

class KeptTransactions extends Keeping {
  @OnTransaction()
  async apply(): Promise<void> {}
}

class Batches {
  @OnBatch()
  async applyAll(): Promise<void> {}
}

class KeptBatches extends Keeping {
  @OnBatch()
  async applyAll(): Promise<void> {}
}

class Changes {
  @OnChange('public.t')
  async told(): Promise<void> {}
}

class KeptChanges extends Keeping {
  @OnChange('public.t')
  async told(): Promise<void> {}
}

class TransactionsAndBatches extends KeptTransactions {
  @OnBatch()
  async applyAll(): Promise<void> {}
}

class BatchesAndChanges extends KeptBatches {
  @OnChange('public.t')
  async told(): Promise<void> {}
}

class TransactionsAndChanges extends Transactions {
  @OnChange('public.t')
  async told(): Promise<void> {}

  @OnChange('public.u')
  async toldToo(): Promise<void> {}
}

const NO_CHECKPOINT =
  'has no @Checkpoint(); put it on a property that holds a CheckpointTable, or on a method that reads the position applied last. A sink that cannot keep a position leaves it to the option checkpointStore.';
const WITHOUT_CHANGES =
  '@OnChange() (told), which needs a checkpoint that the library keeps and does not fit the options of pipeline "default"; set the option checkpointStore, or read the changes in a method with @OnTransaction().';
const WITHOUT_BATCHES =
  '@OnBatch() (applyAll), which takes several transactions at a time and does not fit the options of pipeline "default"; set the option batchDelivery, or use @OnTransaction().';
const NO_BATCH =
  'has no @OnBatch(); the option batchDelivery needs it on the method that applies several transactions.';
const CHECKPOINT_OF_LIB =
  'checkpoints has @Checkpoint(), but the library keeps the checkpoint of pipeline "default"; remove the member, or the option checkpointStore.';
const NO_HANDLER_OF_LIB =
  'has no @OnTransaction(); put it on the method that takes a transaction, or @OnChange() on those that take the changes of a table.';
const BATCHES_OF_LIB =
  '@OnBatch() (applyAll), which needs a sink that keeps its checkpoint and does not fit the options of pipeline "default"; use @OnTransaction(); checkpointStore.batch stores the checkpoint once for several transactions.';

describe('a sink in each mode of delivery', () => {
  it.each<[Mode, new () => object, readonly string[]]>([
    ['transaction', KeptTransactions, ['checkpoint', 'transaction']],
    ['batch', KeptBatches, ['batch', 'checkpoint']],
    ['lib', Transactions, ['transaction']],
    ['lib', Changes, ['tables', 'transaction']],
    ['lib-batch', Transactions, ['transaction']],
    ['lib-batch', Changes, ['tables', 'transaction']],
  ])('%s: %o offers %o', (mode, sinkClass, offered) => {
    const { name, kind, ...methods } = create(sinkClass, mode);
    expect(Object.keys(methods).toSorted()).toEqual(offered);
    expect([name, kind]).toEqual([sinkClass.name, 'mirror']);
  });

  it.each<[Mode, new () => object, string]>([
    [
      'transaction',
      Nothing,
      'Nothing has no @OnTransaction(); put it on the method that applies a transaction.',
    ],
    [
      'transaction',
      Keeping,
      'Keeping has no @OnTransaction(); put it on the method that applies a transaction.',
    ],
    ['transaction', Transactions, `Transactions ${NO_CHECKPOINT}`],
    ['transaction', KeptBatches, `KeptBatches has ${WITHOUT_BATCHES}`],
    [
      'transaction',
      TransactionsAndBatches,
      `TransactionsAndBatches has ${WITHOUT_BATCHES}`,
    ],
    ['transaction', Changes, `Changes has ${WITHOUT_CHANGES}`],
    ['transaction', KeptChanges, `KeptChanges has ${WITHOUT_CHANGES}`],
    ['batch', Keeping, `Keeping ${NO_BATCH}`],
    ['batch', Batches, `Batches ${NO_CHECKPOINT}`],
    [
      'batch',
      KeptTransactions,
      'KeptTransactions has @OnTransaction() (apply), which takes one transaction at a time and does not fit the options of pipeline "default"; use @OnBatch(), or remove the option batchDelivery.',
    ],
    [
      'batch',
      TransactionsAndBatches,
      'TransactionsAndBatches has @OnTransaction() (apply), which takes one',
    ],
    [
      'batch',
      BatchesAndChanges,
      'BatchesAndChanges has @OnChange() (told), which takes one change at a time and does not fit the options of pipeline "default"; use @OnBatch(), or remove the option batchDelivery.',
    ],
    ['lib', Nothing, `Nothing ${NO_HANDLER_OF_LIB}`],
    ['lib', KeptTransactions, `KeptTransactions.${CHECKPOINT_OF_LIB}`],
    ['lib', KeptChanges, `KeptChanges.${CHECKPOINT_OF_LIB}`],
    ['lib', Batches, `Batches has ${BATCHES_OF_LIB}`],
    [
      'lib',
      TransactionsAndChanges,
      'TransactionsAndChanges has @OnTransaction() (apply) and @OnChange() (told, toldToo), so each change would be handled twice; keep one of the two.',
    ],
    ['lib-batch', Nothing, `Nothing ${NO_HANDLER_OF_LIB}`],
    ['lib-batch', KeptTransactions, `KeptTransactions.${CHECKPOINT_OF_LIB}`],
    ['lib-batch', Batches, `Batches has ${BATCHES_OF_LIB}`],
    [
      'lib-batch',
      TransactionsAndChanges,
      'TransactionsAndChanges has @OnTransaction() (apply) and @OnChange() (told, toldToo)',
    ],
  ])('%s: refuses %o', (mode, sinkClass, message) => {
    expect(() => create(sinkClass, mode)).toThrow(SinkDefinitionError);
    expect(() => create(sinkClass, mode)).toThrow(message);
  });

  it('refuses a second method for batches', () => {
    class Twice extends KeptBatches {
      @OnBatch()
      async other(): Promise<void> {}
    }
    expect(() => create(Twice, 'batch')).toThrow(
      'Twice has @OnBatch() on more than one member (applyAll, other); keep one.',
    );
  });

  it('takes a decorator that stands twice on one method for one', () => {
    class Doubled extends Keeping {
      @OnBatch()
      @OnBatch()
      async applyAll(): Promise<void> {}
    }
    expect(create(Doubled, 'batch')).toHaveProperty('batch');
  });

  it('refuses a method whose decorator has the handle of another pipeline', () => {
    const audit = definePipeline<{ 'public.t': { id: number } }>('audit');
    class OtherBatches extends Keeping {
      @OnBatch(audit)
      async applyAll(): Promise<void> {}
    }
    class OtherChanges {
      @OnChange(audit, 'public.t')
      async told(): Promise<void> {}
    }
    expect(() => create(OtherBatches, 'batch')).toThrow(
      'OtherBatches.applyAll has @OnBatch("audit"), but OtherBatches is the sink of pipeline "default"; name the same pipeline in both.',
    );
    expect(() => create(OtherChanges, 'lib')).toThrow(
      'OtherChanges.told has @OnChange("audit"), but OtherChanges is the sink of pipeline "default"; name the same pipeline in both.',
    );
  });

  it('calls the method for batches on the instance', async () => {
    class Counting extends Keeping {
      readonly #step = 2;

      @OnBatch()
      async applyAll(transactions: readonly object[]): Promise<number> {
        return transactions.length * this.#step;
      }
    }
    expect(await create(Counting, 'batch').batch?.([])).toBe(0);
  });
});
