import type {
  SessionIdentity,
  SessionIdentityContext,
} from '../engine/model/session-identity.js';
import { markMember } from '../sinks/sink.metadata.js';
import type { HandlerDecorator } from './handler-decorator.js';

/**
 * Makes a method the judge of the server: `(identity, context) => Promise<void>`. It is asked on every connect and reconnect, before the
 * checkpoint is read. Resolving accepts the server; rejecting halts with `session_identity/rejected`, and `halt.sinkError()` has
 * the error.
 */
export function OnSessionIdentity(): HandlerDecorator<
  [identity: SessionIdentity, context: SessionIdentityContext]
> {
  return (prototype, property) => {
    markMember('sessionIdentity', prototype, { property });
  };
}
