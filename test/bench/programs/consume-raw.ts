import { openRawStream } from './raw-stream.js';
import { setting, tell } from './settings.js';
import { Stopwatch } from './stopwatch.mjs';

const COMMIT = 'C'.charCodeAt(0);
const INSERT = 'I'.charCodeAt(0);

const transactions = Number(setting('TRANSACTIONS'));
let stopwatch: Stopwatch | null = null;
let messages = 0;
let rows = 0;
let commits = 0;

await openRawStream({
  started() {
    stopwatch = new Stopwatch();
  },
  message(bytes, at) {
    messages++;
    const kind = bytes[at];
    if (kind === INSERT) rows++;
    if (kind !== COMMIT || ++commits < transactions) return;
    const usage = stopwatch?.stop();
    void tell({ ...usage, messages, rows, checksum: null }).then(() =>
      process.exit(0),
    );
  },
});
