import type { Message, MessageContext } from '../engine/model/message.js';
import { markMember } from '../sinks/sink.metadata.js';
import type { HandlerDecorator } from './handler-decorator.js';

/** Which messages a method takes. */
export interface OnMessageOptions {
  /** The prefix that the emitter gave them, to the letter. By default messages of every prefix are taken. */
  readonly prefix?: string;
}

/**
 * Makes a method a handler of logical messages that were written outside transactions, as `pg_logical_emit_message(false, …)` does:
 * `(message, context) => Promise<void>`. Needs the option `messages`, which needs such a method. Transactional messages come with
 * their transaction, as {@link Transaction.messages}; on a sink with {@link OnChange} they come to such methods too, between the changes.
 *
 * The decorator may be repeated for further prefixes. A message goes to every method that takes its prefix, one after the other in the order of the class, and is done when the last
 * promise has resolved. One that rejects halts the pipeline with `sink_failed`, and the message comes to all of them again; one that
 * is no promise halts with `sink_failed/no_promise`. A message that no method takes is passed over.
 *
 * At least once: messages that were handled since their position was last stored, about once in 10 s, come again when the process or the
 * connection is lost. No checkpoint tells them apart; a sink recognises one by `context.lsn`.
 */
export function OnMessage(
  options: OnMessageOptions = {},
): HandlerDecorator<[message: Message, context: MessageContext]> {
  return (prototype, property) => {
    markMember('message', prototype, { property, settings: options });
  };
}
