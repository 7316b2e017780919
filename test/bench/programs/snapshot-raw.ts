import { Client } from 'pg';
import { containParser } from '../../../lib/engine/server/pg-internals.js';
import { endWithBench, sourceConnection, tell } from './settings.js';
import { Stopwatch } from './stopwatch.mjs';

endWithBench();
let rows = 0;
const client = new Client(sourceConnection());
containParser(client, () => {
  rows += 1;
});
const idleRssMb = process.memoryUsage().rss / 1024 / 1024;
const stopwatch = new Stopwatch();
await client.connect();
await client.query('COPY orders TO STDOUT');
const usage = stopwatch.stop();
await client.end();
await tell({ ...usage, idleRssMb, rows });
process.exit(0);
