import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import {
  resolveOptions,
  type ResolvedOptions,
} from '../../lib/engine/options/resolve-options.js';
import type { AttachedSink } from '../../lib/engine/deliver/sink.js';
import type { PipelineState } from '../../lib/engine/telemetry/pipeline-state.js';

/** Options that pass validation and connect to nothing: port 1 refuses. */
export const unreachable: PipelineOptions = {
  connection: { host: '127.0.0.1', port: 1, user: 'nobody', database: 'none' },
  slotName: 'orders',
  publication: 'orders_pub',
  goForwardOnly: true,
};

type Listener = (event: object) => void;

/** Stands in for a pipeline where only its life within the application matters. Override its token with it. */
export class StubPipeline {
  readonly options: ResolvedOptions;
  readonly calls: string[] = [];
  state: PipelineState = 'idle';
  since = new Date();
  sink: AttachedSink | null = null;
  /** Runs inside `start()`, `stop()` and `whenStreaming()`. */
  onStart = (): void => {};
  onStop = async (): Promise<void> => {};
  streaming: () => Promise<void> = () => Promise.resolve();
  readonly #listeners = new Map<string, Listener[]>();

  constructor(
    readonly name: string,
    options: Partial<PipelineOptions> = {},
  ) {
    this.options = resolveOptions({ ...unreachable, ...options });
  }

  attach(sink: AttachedSink): void {
    this.calls.push('attach');
    this.sink = sink;
  }

  start(): void {
    this.calls.push('start');
    this.onStart();
  }

  async stop(): Promise<void> {
    this.calls.push('stop');
    await this.onStop();
  }

  async whenStreaming(): Promise<void> {
    this.calls.push('whenStreaming');
    await this.streaming();
  }

  async checkSlot(): Promise<void> {
    this.calls.push('checkSlot');
  }

  status(): object {
    return {
      pipeline: this.name,
      state: this.state,
      since: this.since.toISOString(),
      startedAt: null,
      lag: { bytes: 0, milliseconds: 0 },
      handler: null,
      slot: null,
      snapshot: null,
      neverCopied: null,
      halt: null,
    };
  }

  on(event: string, listener: Listener): void {
    this.#listeners.set(event, [
      ...(this.#listeners.get(event) ?? []),
      listener,
    ]);
  }

  emit(event: string, payload: object): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(payload);
  }

  /** Enters a state and says so, as the engine does. */
  enter(to: PipelineState, reason: string | null = null): void {
    const from = this.state;
    this.state = to;
    this.emit('state', { from, to, reason });
  }
}
