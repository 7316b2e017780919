import type { CheckpointContext } from '../model/checkpoint.js';
import type { AppliedTransaction } from './applied-batch.js';

type Binding = Pick<CheckpointContext, 'pipeline' | 'slotName'>;

/** The one pipeline that a `CheckpointTable` serves. */
export class TableBinding {
  #current: Binding | null = null;

  /** @throws {Error} when it serves another pipeline or slot already */
  bindTo({ pipeline, slotName }: Binding): void {
    const bound = this.#current;
    if (
      bound !== null &&
      (bound.pipeline !== pipeline || bound.slotName !== slotName)
    ) {
      throw new Error(
        `One CheckpointTable serves one pipeline: this one keeps slot ${bound.slotName} of pipeline ${bound.pipeline}. Create another for slot ${slotName} of pipeline ${pipeline}; both may use the same table.`,
      );
    }
    this.#current = { pipeline, slotName };
  }

  /** @throws {Error} when there is none yet */
  get bound(): Binding {
    if (this.#current === null) {
      throw new Error(
        'This CheckpointTable belongs to no pipeline yet: it must stand on a property marked @Checkpoint() of a sink class, and the application must have started.',
      );
    }
    return this.#current;
  }

  /** @throws {Error} when it is a transaction of another slot */
  requireOwn(tx: Pick<AppliedTransaction, 'slotName'>): void {
    const { slotName } = this.bound;
    if (tx.slotName !== slotName) {
      throw new Error(
        `This CheckpointTable keeps slot ${slotName} and was given a transaction of slot ${tx.slotName}. Use the CheckpointTable of the sink that received it.`,
      );
    }
  }
}
