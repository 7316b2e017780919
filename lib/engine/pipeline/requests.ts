import { HaltError } from '../model/halt.js';
import type { Lsn } from '../model/lsn.js';
import { dropSlot, readConfirmedFlush } from '../server/slot.js';
import { readWalEnd } from '../server/wal-end.js';
import type { PipelineState } from '../telemetry/pipeline-state.js';
import { copyTables, namesOfTables } from './asked-snapshot.js';
import type { PipelineConnection } from './connection.js';
import type { HandlerScope } from './handlers.js';
import type { PipelineLifecycle } from './lifecycle.js';
import type { PipelineRecord } from './record.js';
import { skipRefusal } from './skip-refusal.js';
import { Skipping } from './skipping.js';
import type { SourceAccess } from './source-access.js';
import { PipelineStateError } from './state-error.js';
import type { PipelineWaiters } from './waiters.js';

/** What answering takes of a pipeline. */
export interface RequestSubject {
  readonly pipeline: string;
  readonly slotName: string;
  readonly source: SourceAccess;
  readonly record: PipelineRecord;
  readonly lifecycle: PipelineLifecycle;
  readonly waiters: PipelineWaiters;
  readonly handlers: HandlerScope;
}

/** What a pipeline is asked for beside its work; see {@link Pipeline}, which says what each may be asked when. */
export class PipelineRequests {
  readonly #subject: RequestSubject;

  constructor(subject: RequestSubject) {
    this.#subject = subject;
  }

  async skipTransaction(lsn: Lsn): Promise<void> {
    const { pipeline, slotName, source, record, lifecycle } = this.#subject;
    const { state, halt } = record;
    const { stopping } = lifecycle;
    const refusal = skipRefusal({ state, stopping, halt }, lsn);
    if (refusal !== null)
      throw new PipelineStateError(`Pipeline "${pipeline}" ${refusal}`);
    const of = halt?.delivery === 'message' ? 'message' : 'transaction';
    const skipping = new Skipping(of, lsn, {
      confirmedFlush: (signal) =>
        source.ask((session) => readConfirmedFlush(session, slotName), signal),
      skipped: () => record.events.emit('skipped', { of, lsn }),
    });
    lifecycle.begin(skipping);
    await skipping.done;
  }

  async whenStreaming(): Promise<void> {
    const { record, waiters } = this.#subject;
    if (record.state === 'streaming') return;
    this.#refuseUnlessRunning('idle');
    await waiters.streaming();
  }

  async caughtUp(lsn: Lsn | undefined): Promise<void> {
    const { source, lifecycle, waiters } = this.#subject;
    this.#refuseUnlessRunning();
    const wanted = lsn ?? (await source.ask(readWalEnd));
    if ((lifecycle.running?.connection?.positions.durable ?? 0n) >= wanted)
      return;
    this.#refuseUnlessRunning();
    await waiters.reaching(wanted);
  }

  async snapshot(tables: readonly string[]): Promise<void> {
    const { record, waiters, handlers } = this.#subject;
    await copyTables(namesOfTables(tables), {
      connection: () => this.#streamingConnection(),
      nextConnection: () => waiters.streaming(),
      handler: handlers.current,
      warning: (message) => record.warning(message),
    });
  }

  async dropSlot(): Promise<void> {
    const { pipeline, slotName, source, lifecycle } = this.#subject;
    if (lifecycle.running !== null)
      throw new PipelineStateError(
        `Pipeline "${pipeline}" runs: stop it before dropping its slot.`,
      );
    await source.ask((session) => dropSlot(session, slotName));
  }

  #streamingConnection(): PipelineConnection {
    const { pipeline, record, lifecycle } = this.#subject;
    const connection = lifecycle.running?.connection ?? null;
    if (connection === null || record.state !== 'streaming')
      throw new PipelineStateError(
        `Pipeline "${pipeline}" does not stream (${record.state}).`,
      );
    return connection;
  }

  #refuseUnlessRunning(alsoAllowed?: PipelineState): void {
    const { pipeline, record, lifecycle } = this.#subject;
    const { halt, state } = record;
    if (halt !== null) throw new HaltError(halt);
    if (lifecycle.running === null && state !== alsoAllowed)
      throw new PipelineStateError(
        `Pipeline "${pipeline}" does not run (${state}).`,
      );
  }
}
