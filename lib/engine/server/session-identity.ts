import type { SessionIdentity } from '../model/session-identity.js';
import { requireAcceptance } from './acceptance.js';
import type { ChainSubject } from './chain-subject.js';
import type { CommandSession } from './session.js';

/**
 * Asks the sink whether this is its server, before anything else is read or created.
 *
 * @throws {HaltError} `session_identity/rejected`
 */
export async function approveIdentity(
  session: CommandSession,
  { pipeline, options, capture, sink }: ChainSubject,
  identity: SessionIdentity,
): Promise<void> {
  const { sessionIdentity } = sink;
  if (sessionIdentity === undefined) return;
  await requireAcceptance(
    session,
    'session_identity/rejected',
    `@OnSessionIdentity() of ${sink.name}`,
    () =>
      sessionIdentity(identity, {
        pipeline,
        slotName: options.slotName,
        publications: capture.publications,
      }),
  );
}
