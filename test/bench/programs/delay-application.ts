import {
  Checkpoint,
  type Lsn,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from '../../../lib/index.js';
import { startApplication } from './application.js';
import { Delays } from './delays.js';
import { tell } from './settings.js';

/** Looks at the clock as the first thing that its handler does. */
@ReplicantSink()
class DelaySink {
  readonly delays = new Delays();
  #complete: () => void = () => {};

  /** Resolves when the last transaction has been seen. */
  readonly complete = new Promise<void>((resolve) => {
    this.#complete = resolve;
  });

  @Checkpoint()
  async position(): Promise<Lsn | null> {
    return null;
  }

  @OnTransaction()
  async see({
    commitTimeMicros,
  }: Pick<Transaction, 'commitTimeMicros'>): Promise<void> {
    if (this.delays.add(commitTimeMicros)) this.#complete();
  }
}

const { application, sink } = await startApplication(DelaySink, () => {
  void tell({ streaming: true });
});
await sink.complete;
await application.close();
await tell(sink.delays.summary());
process.exit(0);
