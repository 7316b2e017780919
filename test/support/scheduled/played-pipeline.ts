import { parseLsn, type Lsn } from '../../../lib/engine/model/lsn.js';
import { Pipeline } from '../../../lib/engine/pipeline.js';
import type { StreamedStatus } from '../../../lib/engine/telemetry/streamed-status.js';
import { readSlot, terminateBackend } from '../logical-slot.js';
import { flushedLsn, type SourceAndTarget } from '../source-and-target.js';
import { TcpProxy } from '../tcp-proxy.js';
import { waitFor } from '../wait-for.js';
import { type RecordingSink, RefusedError } from './recording-sink.js';
import { optionsOf, type Setting } from './settings.js';
import type { Crash } from './steps.js';

/** A table that is not published: writing to it makes the log durable so far. */
export const UNPUBLISHED = 'unpublished.noise';

const CATCH_UP_MS = 30_000;
/** An open transaction may keep a connection from beginning. */
const ARRIVAL_MS = 500;

/** A pipeline behind a bad network, which is started again when its handler was told to fail. */
export class PlayedPipeline {
  /** Parts that were written to disk. */
  spilled = 0;
  readonly warnings: string[] = [];
  #halt: string | null = null;

  private constructor(
    private readonly source: SourceAndTarget['source'],
    private readonly proxy: TcpProxy,
    private readonly pipeline: Pipeline,
    private readonly sink: RecordingSink,
  ) {
    pipeline.on('spilled', () => {
      this.spilled += 1;
    });
    pipeline.on('warning', ({ message }) => this.warnings.push(message));
    pipeline.on('halt', ({ halt }) => {
      if (halt.sinkError() instanceof RefusedError)
        setImmediate(() => pipeline.start());
      else this.#halt = `the pipeline has halted: ${halt.code}, ${halt.detail}`;
    });
  }

  static async start(
    { source, target }: SourceAndTarget,
    setting: Setting,
    dir: string,
    sink: RecordingSink,
  ): Promise<PlayedPipeline> {
    const proxy = await TcpProxy.start(source.connection);
    const { host, port } = proxy;
    const pipeline = new Pipeline('test', {
      connection: { ...source.connection, host, port },
      slotName: `slot_${source.name}`,
      publication: 'p',
      goForwardOnly: true,
      ...optionsOf(setting, dir, target.connection),
    });
    pipeline.attach(sink.methods(setting.mode === 'batch'));
    const played = new PlayedPipeline(source, proxy, pipeline, sink);
    pipeline.start();
    await pipeline.whenStreaming();
    return played;
  }

  async stop(): Promise<void> {
    await this.pipeline.stop();
    await this.proxy.close();
  }

  async crash(crash: Crash): Promise<void> {
    switch (crash.how) {
      case 'terminated': {
        const slot = await readSlot(
          this.source,
          this.pipeline.options.slotName,
        );
        if (slot?.activePid)
          await terminateBackend(this.source, slot.activePid);
        return;
      }
      case 'reset':
        return this.proxy.reset();
      case 'restarted':
        return this.#restart();
      case 'refused':
        this.sink.refuse(crash.refusal);
    }
  }

  /** Waits until it has received what is in the log so far, if it is connected. */
  async arrival(): Promise<void> {
    const end = await this.#flush();
    const until = performance.now() + ARRIVAL_MS;
    await waitFor(() => {
      const { state, receivedLsn } = this.pipeline.status();
      return (
        state !== 'streaming' ||
        positionOf(receivedLsn) >= end ||
        performance.now() > until
      );
    });
  }

  /** Waits until all that was committed is durable in the sink, and nothing is held any more. */
  async caughtUp(): Promise<void> {
    const end = await this.#flush();
    await waitFor(
      () => {
        if (this.#halt !== null) throw new Error(this.#halt);
        const { durableLsn, streamed } = this.pipeline.status();
        return positionOf(durableLsn) >= end && isEmpty(streamed);
      },
      {
        timeout: CATCH_UP_MS,
        message: `the pipeline to catch up: ${JSON.stringify(this.pipeline.status())}`,
      },
    );
  }

  /** After a transaction that cannot be streamed, nothing is until the next connection. */
  async streamAgain(): Promise<void> {
    if (this.pipeline.status().streamed === null) await this.#restart();
  }

  async #restart(): Promise<void> {
    await this.pipeline.stop();
    this.pipeline.start();
  }

  async #flush(): Promise<Lsn> {
    await this.source.query(`insert into ${UNPUBLISHED} values (1)`);
    return flushedLsn(this.source);
  }
}

function positionOf(text: string | null): Lsn {
  return parseLsn(text ?? '') ?? 0n;
}

function isEmpty(streamed: StreamedStatus | null): boolean {
  return (
    streamed === null ||
    (streamed.transactions === 0 &&
      streamed.bytes === 0 &&
      streamed.bytesOnDisk === 0)
  );
}
