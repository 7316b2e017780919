import { RelationHistory } from '../assemble/relation-history.js';
import { readRelations } from '../assemble/stored-relations.js';
import { SchemaWatch } from '../assemble/schema-watch.js';
import type { Sink } from '../deliver/sink.js';
import { answerOf, type Answer } from '../model/answer.js';
import { errorClass } from '../model/error-class.js';
import { Halt } from '../model/halt.js';
import type { Lsn } from '../model/lsn.js';
import type { SchemaChange } from '../model/schema-change.js';
import {
  describeChange,
  type SchemaChangeFault,
} from '../model/schema-change-fault.js';
import {
  type CheckpointPosition,
  watermarkOf,
} from '../server/checkpoint-reading.js';

/** What asking a sink about a schema change takes. */
export interface SchemaSubject {
  readonly pipeline: string;
  readonly options: { readonly slotName: string };
  readonly sink: Sink;
  readonly schema: PipelineSchema;
  /** Runs a method of the sink so that what it calls can tell that it is inside one. */
  insideDelivery(work: () => Promise<void>): Promise<void>;
  /** The pipeline goes on with this change. */
  schemaChange(change: SchemaChange, commitLsn: Lsn): void;
}

/** What a pipeline knows of the tables that it reads, as long as it lives. */
export class PipelineSchema {
  readonly history = new RelationHistory();
  #warned = false;

  /** Goes back to what is durable, before a connection begins. */
  resume(
    position: CheckpointPosition,
    warning: (message: string) => void,
  ): void {
    const { relations, commitLsn } = position;
    const watermark = watermarkOf(position);
    if (watermark === null) this.history.clear();
    else this.history.comeAgain(watermark);
    // A checkpoint without a place for shapes says nothing of them.
    if (relations === undefined) return;
    const stored = readRelations(relations);
    if (!stored.whole && !this.#warned) {
      this.#warned = true;
      warning(
        'the shapes of tables that are stored with the checkpoint cannot be read; what changed since is not noticed there',
      );
    }
    this.history.resume(stored, commitLsn);
  }

  watch(additive: (change: SchemaChange, commitLsn: Lsn) => void): SchemaWatch {
    return new SchemaWatch(this.history, additive);
  }
}

/**
 * Asks the sink about the changes one after the other. Only while nothing else of the sink runs. Never rejects.
 *
 * @returns why the pipeline halts; `null` when the sink accepted all of them
 */
export async function askAboutChanges(
  subject: SchemaSubject,
  { changes, commitLsn }: SchemaChangeFault,
): Promise<Halt | null> {
  for (const change of changes) {
    const halt = await askAboutChange(subject, change, commitLsn);
    if (halt !== null) return halt;
    subject.schema.history.pass(change, commitLsn);
    subject.schemaChange(change, commitLsn);
  }
  return null;
}

async function askAboutChange(
  subject: SchemaSubject,
  change: SchemaChange,
  lsn: Lsn,
): Promise<Halt | null> {
  const { sink, pipeline, options } = subject;
  const { schemaChange: ask, name } = sink;
  const what = describeChange(change);
  if (ask === undefined) {
    return new Halt('schema_change/destructive', { detail: what, lsn });
  }
  const context = { pipeline, slotName: options.slotName, commitLsn: lsn };
  let answer: Answer = { kind: 'no_promise' };
  await subject.insideDelivery(async () => {
    answer = await answerOf(() => ask(change, context));
  });
  return haltFor(answer, `${what}; the method of ${name}`, lsn);
}

function haltFor(answer: Answer, what: string, lsn: Lsn): Halt | null {
  switch (answer.kind) {
    case 'accepted':
      return null;
    case 'no_promise':
      return new Halt('schema_change/rejected', {
        detail: `${what} returned no promise`,
        lsn,
      });
    case 'rejected':
      return new Halt('schema_change/rejected', {
        detail: `${what} rejected with ${errorClass(answer.error)}`,
        lsn,
        sinkError: answer.error,
      });
  }
}
