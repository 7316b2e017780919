import { formatLsn, parseLsn, type Lsn } from '../model/lsn.js';
import type { PipelineConnection } from './connection.js';
import type { PipelineRecord } from './record.js';
import type { SinkWork } from './work.js';
import type { Positions } from '../source/positions.js';
import type { PipelineState } from '../telemetry/pipeline-state.js';
import type { PipelineStatus } from '../telemetry/pipeline-status.js';
import type { SlotStatus } from '../telemetry/slot-status.js';

const NOT_READING = { readsPerSecond: 0, bytesPerRead: 0, pacing: false };

/** Where a pipeline is, ready for JSON, put together from what its parts know. */
export function pipelineStatus(
  pipeline: string,
  slotName: string,
  record: PipelineRecord,
  connection: PipelineConnection | null,
  work: SinkWork,
  slot: SlotStatus | null,
): PipelineStatus {
  const { state, reason, since, progress, wait, halt } = record;
  return {
    pipeline,
    slotName,
    state,
    reason,
    since: since.toISOString(),
    ...liveStatus(state, connection, work, slot),
    ...progress.status,
    snapshot: record.snapshot.status,
    neverCopied: record.tables.never,
    waiting: wait,
    halt: halt?.toJSON() ?? null,
  };
}

/** What is known of a pipeline from moment to moment. */
function liveStatus(
  state: PipelineState,
  connection: PipelineConnection | null,
  work: SinkWork,
  slot: SlotStatus | null,
): Pick<
  PipelineStatus,
  | 'role'
  | 'connected'
  | 'receivedLsn'
  | 'deliveredLsn'
  | 'durableLsn'
  | 'lag'
  | 'handler'
  | 'inflightBytes'
  | 'streamed'
  | 'reading'
  | 'slot'
> {
  const positions = connection?.positions ?? null;
  return {
    role: state === 'standby' ? 'standby' : 'active',
    connected:
      connection !== null && (state === 'streaming' || state === 'draining'),
    receivedLsn: textOf(positions?.received),
    deliveredLsn: textOf(positions?.delivered),
    durableLsn: textOf(positions?.durable),
    lag: {
      bytes: lagBytes(positions, slot),
      milliseconds: work.lagMilliseconds,
    },
    handler: work.status,
    inflightBytes: connection?.inflightBytes ?? 0,
    streamed: connection?.streamed ?? null,
    reading: connection?.reading ?? NOT_READING,
    slot,
  };
}

function textOf(position: Lsn | undefined): string | null {
  return position === undefined ? null : formatLsn(position);
}

/** What the server said a while ago may be behind what is durable by now. */
function lagBytes(positions: Positions | null, slot: SlotStatus | null) {
  if (positions === null) return slot?.lagBytes ?? 0;
  const { received, durable } = positions;
  const walEnd = parseLsn(slot?.walEndLsn ?? '') ?? 0n;
  const known = received > walEnd ? received : walEnd;
  return Math.max(0, Number(known - durable));
}
