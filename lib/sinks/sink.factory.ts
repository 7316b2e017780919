import type { AttachedSink } from '../engine/deliver/sink.js';
import type { Pipeline } from '../engine/pipeline.js';
import { createMessageHandler } from './message-handlers.js';
import { SinkDefinitionError } from './sink-definition.error.js';
import { createCheckpoint } from './sink.checkpoint.js';
import { createHandlers } from './sink.handlers.js';
import { onlyMethod, type SinkSubject } from './sink.members.js';
import { decoratorOf, sinkKind } from './sink.metadata.js';
import { createSnapshotHandlers } from './snapshot-handlers.js';

/**
 * Turns an instance of a decorated class into what the engine delivers to. Methods are called on the instance itself,
 * past every exception filter, guard and interceptor.
 *
 * @throws {SinkDefinitionError} when decorated members are missing, doubled, of the wrong kind, or not for this mode of delivery
 */
export function createSink(
  sinkClass: { readonly name: string },
  instance: object,
  pipeline: Pipeline,
): AttachedSink {
  const { name } = sinkClass;
  const subject: SinkSubject = { sinkClass, instance, pipeline: pipeline.name };
  const message = createMessageHandler(subject, pipeline.options);
  const handlers = createHandlers(subject, pipeline.options, message);
  const checkpoint = createCheckpoint(subject, pipeline);
  const snapshots = createSnapshotHandlers(
    subject,
    pipeline.options,
    checkpoint,
  );
  const kind = sinkKind(sinkClass);
  const sessionIdentity = onlyMethod('sessionIdentity', subject);
  const slotOrigin = onlyMethod('slotOrigin', subject);
  const schemaChange = onlyMethod('schemaChange', subject);
  if (kind === 'appendLog' && slotOrigin === null) {
    throw new SinkDefinitionError(
      `${name} is of kind 'appendLog' and has no ${decoratorOf('slotOrigin')}; put it on a method that rejects when the slot begins after the end of the log.`,
    );
  }
  return {
    name,
    kind,
    ...handlers,
    ...snapshots,
    ...(checkpoint && { checkpoint }),
    ...(message && { message }),
    ...(sessionIdentity && { sessionIdentity }),
    ...(slotOrigin && { slotOrigin }),
    ...(schemaChange && { schemaChange }),
  };
}
