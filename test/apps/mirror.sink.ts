import { setTimeout as sleep } from 'node:timers/promises';
import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from '../../lib/index.js';
import { bulkMirror } from '../support/bulk-mirror.js';
import { mirror } from '../support/mirror.js';
import { say } from './settings.js';
import { Target } from './target.module.js';

/** Where `HOLD` may hold the sink: before it asks for a connection, before its COMMIT, or after that. */
type Place = 'received' | 'written' | 'committed';

/** Mirrors the source, and says to the spec where it is. */
@ReplicantSink()
export class MirrorSink {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.pool.query(sql, [...values]),
  );

  constructor(private readonly target: Target) {}

  @OnTransaction()
  async apply(transaction: Transaction): Promise<void> {
    await holdAt('received');
    await this.target.transaction(async (client) => {
      await (process.env['BULK'] === 'on'
        ? bulkMirror(client, this.checkpoints, transaction, sayRows)
        : mirror(client, this.checkpoints, transaction));
      await holdAt('written');
    });
    await holdAt('committed');
  }
}

/** Says the number of rows that were read, and pauses for `ROWS_MS` milliseconds. */
async function sayRows(rows: number): Promise<void> {
  say(String(rows));
  const time = process.env['ROWS_MS'];
  if (time !== undefined) await sleep(Number(time));
}

/** Stays for `HOLD_MS` milliseconds, or for ever, at the place that `HOLD` names. */
async function holdAt(place: Place): Promise<void> {
  say(place);
  if (process.env['HOLD'] !== place) return;
  const time = process.env['HOLD_MS'];
  await (time === undefined ? new Promise(() => {}) : sleep(Number(time)));
}
