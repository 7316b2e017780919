import type { CheckpointHome, SinkCheckpoint } from '../model/checkpoint.js';
import { HaltError } from '../model/halt.js';
import type { SessionIdentity } from '../model/session-identity.js';
import type { CaptureSet } from './capture/capture-set.js';
import { available } from './checkpoint-reading.js';
import type { CommandSession } from './session.js';
import { isSynchronousStandby } from './synchronous-standbys.js';

/**
 * Makes sure that the sink's own work does not come back to its pipeline: neither as changes nor as commits that wait
 * for the pipeline to confirm them. Only a checkpoint table tells where the sink is.
 *
 * @throws {HaltError} `preflight/self_feeding`, `preflight/synchronous_standby`
 */
export async function refuseFeedback(
  session: CommandSession,
  checkpoint: SinkCheckpoint,
  identity: SessionIdentity,
  capture: CaptureSet,
): Promise<void> {
  if (checkpoint.kind === 'reader') return;
  const home = await available(checkpoint.keeper.home());
  // A role that may not ask for the identifier is taken to be on the same server: the OID of the table still decides.
  if (isOnServer(home, identity, true) && home.database === identity.database)
    await capture.refuseSelfFeeding(session, home);
  if (isOnServer(home, identity, false)) await refuseWaitForOneself(session);
}

function isOnServer(
  { systemIdentifier }: CheckpointHome,
  identity: SessionIdentity,
  whenUnknown: boolean,
): boolean {
  return systemIdentifier === null
    ? whenUnknown
    : systemIdentifier === identity.systemIdentifier;
}

async function refuseWaitForOneself(session: CommandSession): Promise<void> {
  const own = await synchronousName(session);
  if (own === null) return;
  throw new HaltError('preflight/synchronous_standby', {
    detail: `synchronous_standby_names lets commits wait for the application name "${own}", and the sink commits on the same server; name the standbys instead of *, or run: alter system reset synchronous_standby_names; select pg_reload_conf()`,
  });
}

/** The name of this session when the server lets commits wait for it; `null` when it does not. */
export async function synchronousName(
  session: CommandSession,
): Promise<string | null> {
  const rows = await session.query(
    "select pg_catalog.current_setting('synchronous_standby_names') as standbys," +
      " pg_catalog.current_setting('application_name') as own",
  );
  const own = rows[0]?.['own'] ?? '';
  return isSynchronousStandby(rows[0]?.['standbys'] ?? '', own) ? own : null;
}
