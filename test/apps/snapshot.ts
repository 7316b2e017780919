import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { PoolClient } from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Change,
  Checkpoint,
  CheckpointTable,
  getPipelineToken,
  OnSnapshot,
  OnTransaction,
  type Pipeline,
  ReplicantModule,
  ReplicantSink,
  type SnapshotContext,
  type SnapshotRow,
  type Transaction,
} from '../../lib/index.js';
import { livesForSpec, say, setting } from './settings.js';
import { Target, TargetModule } from './target.module.js';

type Source = { 'public.t': { id: number; v: string } };

/** Keeps a copy of the table `t`, writes down each page of a snapshot, and says its number to the spec. */
@ReplicantSink()
class SnapshotSink {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.pool.query(sql, [...values]),
  );
  #pages = 0;

  constructor(private readonly target: Target) {}

  @OnSnapshot()
  async copy(
    rows: readonly SnapshotRow<Source>[],
    context: SnapshotContext,
  ): Promise<void> {
    await this.target.transaction(async (client) => {
      await this.checkpoints.keepProgress(
        (sql, values) => client.query(sql, [...values]),
        context,
      );
      if (context.firstForTable) await client.query('delete from t');
      await client.query('insert into pages values ($1, $2, $3)', [
        process.pid,
        context.firstForTable,
        rows.map(({ record }) => record.id),
      ]);
      await client.query(
        `insert into t select * from json_populate_recordset(null::t, $1)
          on conflict (id) do update set v = excluded.v`,
        [JSON.stringify(rows.map(({ record }) => record))],
      );
    });
    if (rows.length === 0) return;
    this.#pages += 1;
    say(`page ${this.#pages}`);
    await sleep(Number(process.env['PAGE_MS'] ?? 0));
  }

  @OnTransaction()
  async apply(transaction: Transaction<Source>): Promise<void> {
    await this.target.transaction(async (client) => {
      const isNew = await this.checkpoints.advance(
        (sql, values) => client.query(sql, [...values]),
        transaction,
      );
      if (!isNew) return;
      for await (const change of transaction.changes)
        await write(client, change);
    });
  }
}

/** A row that a snapshot beside the stream has not brought yet may be missing. */
async function write(
  client: PoolClient,
  change: Change<Source>,
): Promise<void> {
  if (change.op === 'truncate') {
    await client.query('truncate t');
    return;
  }
  if (change.op !== 'insert' && change.old !== null)
    await client.query('delete from t where id = $1', [change.old.record.id]);
  if (change.op !== 'delete')
    await client.query(
      'insert into t values ($1, $2) on conflict (id) do update set v = excluded.v',
      [change.record.id, change.record.v],
    );
}

@Module({
  imports: [
    ReplicantModule.forRootAsync({
      useFactory: () => ({
        connection: setting('SOURCE_URL'),
        slotName: setting('SLOT'),
        publication: 'p',
        snapshot:
          setting('SNAPSHOT') === 'incremental'
            ? { mode: 'incremental' }
            : true,
        leaderElection: true,
      }),
    }),
    TargetModule,
  ],
  providers: [SnapshotSink],
})
class SnapshotApplication {}

const application = await NestFactory.createApplicationContext(
  SnapshotApplication,
  { logger: ['warn', 'error', 'fatal'] },
);
const pipeline = application.get<Pipeline>(getPipelineToken());
pipeline.on('state', ({ to }) => {
  if (to !== 'halted') say(to);
});
// Not the word by which other applications say that all is over: this one may be told to begin anew.
pipeline.on('halt', ({ halt }) => say(`halt ${halt.code}`));
pipeline.on('snapshotCompleted', () => say('copied'));
say(pipeline.state);
process.on('message', (word) => {
  if (word !== 'begin anew') return;
  void pipeline.dropSlot().then(() => pipeline.start());
});
livesForSpec(application);
