import { Delays } from './delays.js';
import { openRawStream } from './raw-stream.js';
import { tell } from './settings.js';
import { POSTGRES_EPOCH_MICROS } from './wall-clock.js';

const COMMIT = 'C'.charCodeAt(0);
/** Type, flags, position and end of the commit come before its time. */
const COMMIT_TIME = 18;

const delays = new Delays();

await openRawStream({
  started() {
    void tell({ streaming: true });
  },
  message(bytes, at) {
    if (bytes[at] !== COMMIT) return;
    const time = bytes.readBigInt64BE(at + COMMIT_TIME) + POSTGRES_EPOCH_MICROS;
    if (!delays.add(time)) return;
    void tell(delays.summary()).then(() => process.exit(0));
  },
});
