import type {
  SessionIdentity,
  SessionIdentityContext,
} from '../engine/model/session-identity.js';
import { markHook } from '../sinks/sink.metadata.js';
import type { HookDecorator } from './hook-decorator.js';

/**
 * Makes a method the judge of the server: `(identity, context) => Promise<void>`. It is asked on every connect and reconnect, before the
 * checkpoint is read. Resolving accepts the server; rejecting halts with `session_identity/rejected`, and `halt.sinkError()` has
 * the error.
 */
export function OnSessionIdentity(): HookDecorator<
  [identity: SessionIdentity, context: SessionIdentityContext]
> {
  return (prototype, property) => {
    markHook('sessionIdentity', prototype, { property });
  };
}
