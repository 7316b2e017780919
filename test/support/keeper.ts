import type {
  CheckpointHome,
  CheckpointKeeper,
  StoredCheckpoint,
} from '../../lib/engine/model/checkpoint.js';

/** A checkpoint in memory that remembers to which pipelines it was bound. */
export class MemoryKeeper implements CheckpointKeeper {
  readonly bound: object[] = [];
  readonly advancedTo = null;

  bindTo(owner: { pipeline: string; slotName: string }): void {
    this.bound.push(owner);
  }

  identify(): void {}

  async load(): Promise<StoredCheckpoint | null> {
    return null;
  }

  async confirm(): Promise<void> {}

  async retract(): Promise<void> {}

  async home(): Promise<CheckpointHome> {
    return {
      systemIdentifier: '1',
      database: 'none',
      relationOid: 1,
      quotedName: 'public.none',
    };
  }
}
