import { isDeepStrictEqual } from 'node:util';
import type { Client } from 'pg';
import { CheckpointTable } from '../../../lib/engine/checkpoint/checkpoint-table.js';
import { formatLsn } from '../../../lib/engine/model/lsn.js';
import { present } from '../present.js';
import type { SourceAndTarget } from '../source-and-target.js';
import { type Content, runsOf } from './content.js';
import { Expected, isAsDone } from './expected.js';
import { type Committed, PlainReader } from './plain-reader.js';
import { PlayedPipeline, UNPUBLISHED } from './played-pipeline.js';
import { RecordingSink } from './recording-sink.js';
import { RowMirror } from './row-mirror.js';
import { scheduleOf } from './schedule.js';
import type { Setting } from './settings.js';
import type { Schedule, Step } from './steps.js';

const MOST_SESSIONS = 4;

/** What a source needs before its first schedule. */
const SCHEMA = `create type mood as enum ('sad', 'glad');
  create schema unpublished; create table ${UNPUBLISHED}(id int);
  create publication p for tables in schema public`;

/** A source and a pipeline, which play one schedule after the other. */
export class Lane {
  private constructor(
    private readonly client: Client,
    private readonly sessions: readonly Client[],
    private readonly pipeline: PlayedPipeline,
    private readonly sink: RecordingSink,
    private readonly mirror: RowMirror,
    private readonly plain: PlainReader,
  ) {}

  /**
   * @param databases - both empty
   * @param dir - for what is held on disk
   */
  static async open(
    databases: SourceAndTarget,
    setting: Setting,
    dir: string,
  ): Promise<Lane> {
    const { source, target } = databases;
    await source.query(SCHEMA);
    const client = await source.connect();
    const plain = new PlainReader(
      client,
      `${source.name}_plain`,
      setting.types,
    );
    await plain.create();
    const mirror = new RowMirror();
    const sink = new RecordingSink(
      mirror,
      target,
      setting.mode.startsWith('library')
        ? null
        : new CheckpointTable((sql, values) => target.query(sql, [...values])),
    );
    const pipeline = await PlayedPipeline.start(databases, setting, dir, sink);
    const sessions: Client[] = [];
    while (sessions.length < MOST_SESSIONS)
      sessions.push(await source.connect());
    return new Lane(client, sessions, pipeline, sink, mirror, plain);
  }

  /** Parts of transactions that were written to disk. */
  get spilled(): number {
    return this.pipeline.spilled;
  }

  async close(): Promise<void> {
    await this.pipeline.stop();
  }

  /** @throws {Error} when the sink got anything but what was committed */
  async play(seed: number): Promise<void> {
    const schedule = scheduleOf(seed);
    await this.pipeline.streamAgain();
    await this.#createTables(schedule);
    const expected = await this.#run(schedule.steps);
    await this.pipeline.caughtUp();
    const { sink } = this;
    const fault =
      sink.faults[0] ??
      differenceOfRuns(expected, sink.delivered) ??
      differenceOfContents(await this.plain.read(), sink) ??
      (await this.#differenceOfRows(schedule));
    if (fault !== null) throw new Error(fault);
    await this.#dropTables(schedule);
  }

  async #createTables({ tables }: Schedule): Promise<void> {
    for (const { name, full } of tables)
      await this.client.query(
        `create table ${name}(id int primary key, mark int, v text); alter table ${name} replica identity ${full ? 'full' : 'default'}`,
      );
  }

  async #dropTables({ tables }: Schedule): Promise<void> {
    this.sink.forget();
    for (const { name } of tables) {
      this.mirror.forget(name);
      await this.client.query(`drop table ${name}`);
    }
  }

  async #run(steps: readonly Step[]): Promise<Expected> {
    const expected = new Expected();
    for (const step of steps) {
      if (step.kind === 'crash') await this.pipeline.crash(step.crash);
      else if (step.kind === 'arrival') await this.pipeline.arrival();
      else {
        const session = present(this.sessions[step.session]);
        const { rowCount } = await session.query(sqlOf(step));
        expected.done(step, rowCount ?? 0);
      }
    }
    return expected;
  }

  async #differenceOfRows({ tables }: Schedule): Promise<string | null> {
    for (const { name } of tables) {
      const difference = await this.mirror.difference(this.client, name);
      if (difference !== null) return difference;
    }
    return null;
  }
}

function sqlOf(step: Exclude<Step, { kind: 'crash' | 'arrival' }>): string {
  switch (step.kind) {
    case 'statement':
      return step.sql;
    case 'savepoint':
    case 'release':
    case 'rollback to':
      return `${step.kind} ${step.name}`;
    default:
      return step.kind;
  }
}

function differenceOfRuns(
  { transactions }: Expected,
  delivered: readonly Content[],
): string | null {
  for (let at = 0; at < Math.max(transactions.length, delivered.length); at++) {
    const expected = transactions[at];
    const content = delivered[at];
    const runs = content && runsOf(content);
    if (!expected || !runs || !isAsDone(runs, expected))
      return `transaction ${at} of ${transactions.length} is not what its session did: ${JSON.stringify(runs)} in place of ${JSON.stringify(expected)}`;
  }
  return null;
}

function differenceOfContents(
  { transactions, messages }: Committed,
  sink: RecordingSink,
): string | null {
  for (const [at, transaction] of transactions.entries()) {
    const content = sink.delivered[at];
    if (!isDeepStrictEqual(content, transaction))
      return `the transaction at ${formatLsn(transaction.commitLsn)} is not what is read without streaming: ${differenceOf(content, transaction)}`;
  }
  return isDeepStrictEqual(sink.messages, messages)
    ? null
    : 'messages outside transactions are not what is read without streaming';
}

function differenceOf(content: Content | undefined, plain: Content): string {
  if (content === undefined) return 'it is missing';
  const at = plain.changes.findIndex(
    (change, index) => !isDeepStrictEqual(change, content.changes[index]),
  );
  return at < 0
    ? `${shown({ ...content, changes: content.changes.length })} in place of ${shown({ ...plain, changes: plain.changes.length })}`
    : `${shown(content.changes[at])} in place of ${shown(plain.changes[at])}`;
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'bigint' ? String(part) : part,
  );
}
