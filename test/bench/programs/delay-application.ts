import {
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from '../../../lib/index.js';
import { readToTheEnd } from './application.js';
import { Delays } from './delays.js';
import { ReadingSink } from './reading-sink.js';
import { tell } from './settings.js';

/** Looks at the clock as the first thing that its handler does. */
@ReplicantSink()
class DelaySink extends ReadingSink {
  readonly delays = new Delays();

  @OnTransaction()
  async see({
    commitTimeMicros,
  }: Pick<Transaction, 'commitTimeMicros'>): Promise<void> {
    if (this.delays.add(commitTimeMicros)) this.finish();
  }
}

await readToTheEnd({
  sink: DelaySink,
  options: { publication: 'p', goForwardOnly: true },
  streaming: () => void tell({ streaming: true }),
  result: ({ delays }) => delays.summary(),
});
