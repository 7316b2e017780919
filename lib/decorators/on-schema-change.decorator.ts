import type {
  SchemaChange,
  SchemaChangeContext,
} from '../engine/model/schema-change.js';
import { markMember } from '../sinks/sink.metadata.js';
import type { HandlerDecorator } from './handler-decorator.js';

/**
 * Makes a method the judge of destructive schema changes: `(change, context) => Promise<void>`. It is asked while no other method of
 * the sink runs, after everything before the change is durable, and may adapt the sink's own tables. Resolving accepts the change;
 * rejecting halts with `schema_change/rejected`, and `halt.sinkError()` has the error. Without such a method a destructive change halts with
 * `schema_change/destructive`; an additive one (a new column) passes, and is told by the event `schemaChange`.
 *
 * A change may be asked about again after a restart, until a transaction that carries the new shape is durable.
 */
export function OnSchemaChange(): HandlerDecorator<
  [change: SchemaChange, context: SchemaChangeContext]
> {
  return (prototype, property) => {
    markMember('schemaChange', prototype, { property });
  };
}
