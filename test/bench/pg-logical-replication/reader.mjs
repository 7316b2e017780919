// Reads a slot with pg-logical-replication in its default options until the last commit, and reports to the bench.
import {
  LogicalReplicationService,
  PgoutputPlugin,
} from 'pg-logical-replication';
import { Stopwatch } from '../programs/stopwatch.mjs';

const { SOURCE_URL, CERTIFICATE, SLOT, TRANSACTIONS } = process.env;
const transactions = Number(TRANSACTIONS);

process.once('disconnect', () => process.exit(1));

const service = new LogicalReplicationService({
  connectionString: SOURCE_URL,
  ssl: CERTIFICATE ? { ca: CERTIFICATE } : false,
});
const plugin = new PgoutputPlugin({ protoVersion: 1, publicationNames: ['p'] });

/** @type {Stopwatch | null} */
let stopwatch = null;
let rows = 0;
let commits = 0;

service.on('start', () => {
  stopwatch = new Stopwatch();
});
service.on('data', (_lsn, message) => {
  if (message.tag === 'insert') rows++;
  if (message.tag !== 'commit' || ++commits < transactions) return;
  const usage = stopwatch.stop();
  process.send({ ...usage, rows, messages: null, checksum: null }, () =>
    process.exit(0),
  );
});
service.on('error', (error) => {
  throw error;
});
await service.subscribe(plugin, SLOT);
