import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assembler,
  dataFrame,
  intakePorts,
  keepaliveFrame,
  typeCatalog,
} from '../../../test/support/fed-intake.js';
import { SpillFilesInMemory } from '../../../test/support/spill-file-in-memory.js';
import {
  Schedule,
  type Step,
  STEP_NAMES,
  type StepName,
} from '../../../test/support/streamed/schedule.js';
import { ARRAY_OF_MOODS } from '../../../test/support/streamed/server.js';
import type { StreamedWork } from '../deliver/work.js';
import { type Deferred, deferred } from '../model/deferred.js';
import type { Lsn } from '../model/lsn.js';
import type { Message } from '../model/message.js';
import { PlainReadingFault } from '../model/plain-reading-fault.js';
import type { Transaction } from '../model/transaction.js';
import { StreamedTransactions } from '../streamed/streamed-transactions.js';
import type { CatalogType } from '../values/catalog-types.js';
import { PipelineIntake } from './intake.js';

/** How often each step comes, next to the others. */
const WEIGHTS: Readonly<Record<StepName, number>> = {
  begin: 8,
  write: 40,
  truncate: 2,
  message: 2,
  elsewhere: 3,
  looseMessage: 1,
  savepoint: 8,
  release: 5,
  rollBack: 5,
  define: 3,
  publish: 2,
  analyse: 2,
  stream: 14,
  commit: 7,
  rollBackWhole: 1,
};
const RUNS = 500;
const TIMEOUT_MS = 240_000;
const NONE: ReadonlySet<StepName> = new Set();

const CATALOG: readonly CatalogType[] = [
  {
    oid: String(ARRAY_OF_MOODS),
    kind: 'array',
    inner: '16384',
    delimiter: ',',
  },
  { oid: '16384', kind: 'other', inner: '0', delimiter: ',' },
];

/** What differs from run to run beside the steps. */
interface Setting {
  readonly firstXid: number;
  /** Of transactions that run; `null` for one that holds all, and has no disk. */
  readonly heldBytes: number | null;
  readonly maxTransactionBytes: number;
  /** So many frames lie in what is read from the socket at once. */
  readonly framesAtOnce: number;
  /** So many messages fit before the sink has to go on. */
  readonly messagesAtOnce: number;
}

/** What was delivered, and why no more. */
interface Delivered {
  readonly works: readonly unknown[];
  readonly fault: PlainReadingFault | null;
  readonly spilled: number;
  readonly committedStreamed: number;
}

const settings: fc.Arbitrary<Setting> = fc.record({
  firstXid: fc.constantFrom(750, 2 ** 31 - 4, 2 ** 32 - 6),
  heldBytes: fc.constantFrom(null, 20_000, 70_000, 150_000),
  maxTransactionBytes: fc.constantFrom(500, 3_000, 1_000_000),
  framesAtOnce: fc.constantFrom(1, 3, 20, 1_000),
  messagesAtOnce: fc.constantFrom(1, 4, 1_000),
});

function stepsWithout(left: ReadonlySet<StepName>): fc.Arbitrary<Step[]> {
  const number = fc.nat({ max: 209 });
  const names = STEP_NAMES.filter((name) => !left.has(name)).map((name) => ({
    weight: WEIGHTS[name],
    arbitrary: fc.constant(name),
  }));
  return fc.array(fc.tuple(fc.oneof(...names), number, number), {
    maxLength: 220,
    size: 'max',
  });
}

/** A connection whose frames are fed one after the other, by the pace of what it holds. */
class Connection {
  readonly works: Promise<unknown>[] = [];
  readonly #files = new SpillFilesInMemory();
  readonly #holds = new Set<string>();
  #room: Deferred<void> | null = null;
  #messages = 0;
  #spilled = 0;
  #committed = 0;
  #fault: unknown = null;
  readonly #intake: PipelineIntake;

  constructor(private readonly setting: Setting) {
    const { heldBytes, maxTransactionBytes } = setting;
    const streamed = new StreamedTransactions(
      {
        transactions: 10,
        bytes: heldBytes ?? Number.MAX_SAFE_INTEGER,
        bytesOnDisk: Number.MAX_SAFE_INTEGER,
      },
      {
        fileOf: heldBytes === null ? null : this.#files.fileOf,
        hold: () => this.#holds.add('spilling'),
        release: () => this.#holds.delete('spilling'),
        spilled: () => (this.#spilled += 1),
        failed: (error) => (this.#fault ??= error),
      },
    );
    const ports = intakePorts({
      catalog: typeCatalog(async () => {
        this.#holds.add('types');
        await nextTurn();
        this.#holds.delete('types');
        return CATALOG;
      }),
      push: (work) => this.#push(work),
      arrived: (end) => this.works.push(Promise.resolve({ end })),
      replaying: (runs) => {
        if (runs) this.#committed += 1;
        if (runs) this.#holds.add('replaying');
        else this.#holds.delete('replaying');
      },
      room: () => this.#waitForRoom(),
      fail: (error) => (this.#fault ??= error),
    });
    this.#intake = new PipelineIntake('exact', ports, streamed);
    this.#intake.begin(
      assembler({ maxTransactionBytes, maxMessageBytes: 1_000_000 }),
    );
  }

  async feed(payloads: readonly Buffer[]): Promise<Delivered> {
    for (const [n, payload] of payloads.entries()) {
      const frame = dataFrame(payload);
      this.#intake.take(frame, 0, frame.length);
      frame.fill(0);
      if (n % 10 === 0) this.#intake.take(keepaliveFrame(1n), 0, 18);
      if (n % this.setting.framesAtOnce === 0) await this.#rest();
    }
    await this.#rest();
    const fault = this.#fault;
    if (fault !== null && !(fault instanceof PlainReadingFault))
      throw new Error('The intake has failed.', { cause: fault });
    return {
      works: await Promise.all(this.works),
      fault,
      spilled: this.#spilled,
      committedStreamed: this.#committed,
    };
  }

  /** The sink goes on, and the disk too, until more may be read. */
  async #rest(): Promise<void> {
    do {
      await this.#files.finish(1);
      this.#room?.resolve();
      this.#room = null;
      await nextTurn();
    } while (
      (this.#holds.size > 0 || this.#room !== null) &&
      this.#fault === null
    );
  }

  #waitForRoom(): Promise<void> | null {
    this.#messages += 1;
    if (this.#messages % this.setting.messagesAtOnce !== 0) return null;
    this.#room ??= deferred();
    return this.#room.promise;
  }

  #push(work: StreamedWork): void {
    switch (work.kind) {
      case 'transaction': {
        const { transaction, changes, bytes, end, shapes } = work;
        this.works.push(
          read(transaction).then((whole) => ({
            ...whole,
            changes,
            bytes,
            end,
            shapes,
          })),
        );
        return;
      }
      case 'arriving':
        this.works.push(read(work.transaction));
        return;
      case 'message':
        this.works.push(Promise.resolve(shown(work.message)));
        return;
      case 'end':
        this.#fault ??= work.fault;
        return;
      case 'pass':
    }
  }
}

async function read(transaction: Transaction) {
  const content: unknown[] = [];
  for await (const change of transaction.changes) content.push(change);
  const { xid, commitLsn, commitEndLsn, commitTimeMicros } = transaction;
  const text = JSON.stringify([content, transaction.messages]);
  return { xid, commitLsn, commitEndLsn, commitTimeMicros, text };
}

function shown(message: Message): string {
  return JSON.stringify(message);
}

/** What is new in a transaction depends on what the connection had before. */
function withoutShapes(works: readonly unknown[]): unknown[] {
  return works.map((work) =>
    typeof work === 'object' && work !== null && 'shapes' in work
      ? { ...work, shapes: null }
      : work,
  );
}

/** Feeds what is sent of a schedule in both ways, and compares. */
async function play(
  setting: Setting,
  steps: readonly Step[],
): Promise<Delivered> {
  const schedule = new Schedule(setting.firstXid);
  for (const step of steps) schedule.step(step);
  schedule.finish();
  const plainFrom = (lsn: Lsn): Promise<Delivered> =>
    new Connection(setting).feed(schedule.plainFrom(lsn));
  const expected = await plainFrom(0n);
  const delivered = await new Connection(setting).feed(schedule.streaming.sent);
  const { fault } = delivered;
  if (fault === null) expect(delivered.works).toEqual(expected.works);
  else {
    expect(schedule.maybeUnclear).toContain(fault.commitLsn);
    const rest = await plainFrom(fault.commitLsn);
    expect(withoutShapes([...delivered.works, ...rest.works])).toEqual(
      withoutShapes(expected.works),
    );
  }
  return delivered;
}

describe('A transaction that is sent while it runs', () => {
  it.each([
    ['without messages', new Set<StepName>(['message'])],
    ['with messages', NONE],
  ])(
    'is delivered as one that is sent when it has committed, whatever happens meanwhile: %s',
    async (_, left) => {
      const seed = Date.now() | 0;
      console.log(`seed ${seed} for streamed transactions`);
      const seen = { faults: 0, spilled: 0, committed: 0 };
      await fc.assert(
        fc.asyncProperty(
          settings,
          stepsWithout(left),
          async (setting, steps) => {
            const { fault, spilled, committedStreamed } = await play(
              setting,
              steps,
            );
            if (fault !== null) seen.faults += 1;
            seen.spilled += spilled;
            seen.committed += committedStreamed;
          },
        ),
        { numRuns: RUNS, seed },
      );
      expect(seen.committed).toBeGreaterThan(RUNS);
      expect(seen.spilled).toBeGreaterThan(0);
      if (left.has('message')) expect(seen.faults).toBe(0);
      else expect(seen.faults).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );
});

describe('A table that is announced in a transaction that runs', () => {
  const setting: Setting = {
    firstXid: 750,
    heldBytes: null,
    maxTransactionBytes: 1_000_000,
    framesAtOnce: 1,
    messagesAtOnce: 1_000,
  };
  const row: Step = ['write', 0, 0];
  const rowOfOther: Step = ['write', 1, 0];
  const streamed: Step = ['stream', 0, 0];
  const commit: Step = ['commit', 0, 0];
  const begin: Step = ['begin', 0, 0];

  it('keeps for others the shape that was announced to them later', async () => {
    await play(setting, [
      begin,
      row,
      streamed,
      ['publish', 0, 0],
      begin,
      rowOfOther,
      ['commit', 1, 0],
      commit,
      begin,
      row,
      commit,
    ]);
  });

  it('has for all the shape of the transaction once that commits', async () => {
    await play(setting, [
      begin,
      row,
      commit,
      ['publish', 0, 0],
      begin,
      row,
      streamed,
      commit,
      begin,
      row,
      commit,
    ]);
  });

  it('is announced anew behind a savepoint that was rolled back', async () => {
    await play(setting, [
      begin,
      ['savepoint', 0, 0],
      row,
      streamed,
      ['rollBack', 0, 0],
      row,
      streamed,
      commit,
    ]);
  });
});
