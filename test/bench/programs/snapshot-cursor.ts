import { Client } from 'pg';
import Cursor from 'pg-cursor';
import { endWithBench, sourceConnection, tell } from './settings.js';
import { Stopwatch } from './stopwatch.mjs';

const ROWS_PER_READ = 1_000;

endWithBench();
const client = new Client(sourceConnection());
const idleRssMb = process.memoryUsage().rss / 1024 / 1024;
const stopwatch = new Stopwatch();
await client.connect();
const cursor = client.query(new Cursor('SELECT * FROM orders'));
let rows = 0;
for (;;) {
  const page = await cursor.read(ROWS_PER_READ);
  if (page.length === 0) break;
  rows += page.length;
}
const usage = stopwatch.stop();
await cursor.close();
await client.end();
await tell({ ...usage, idleRssMb, rows });
process.exit(0);
