import { describe, expect, it } from 'vitest';
import { encodeProgress } from '../../model/progress-token.js';
import type {
  SnapshotProgress,
  TableState,
} from '../../model/snapshot-progress.js';
import type {
  KeyColumn,
  PublishedTable,
} from '../../server/published-table.js';
import { BackfillPlan, type BackfillStart } from './backfill-plan.js';
import type { PlannedTable } from './planned-table.js';

const names: string[] = [];

/** Tables of one name are the same table, unless a test says otherwise. */
function oidOf(name: string): number {
  if (!names.includes(name)) names.push(name);
  return names.indexOf(name) + 1;
}

function key(name: string, type = 'pg_catalog.int4'): KeyColumn {
  return {
    name,
    quotedName: name,
    quotedType: type,
    operatorSchema: 'pg_catalog',
    quotedCollation: null,
  };
}

/** A table with the columns `v` and those of its key. */
function table(name: string, ...orderKey: KeyColumn[]): PublishedTable {
  const column = (of: string, isKey: boolean) => ({
    name: of,
    quotedName: of,
    typeOid: 23,
    typeModifier: -1,
    key: isKey,
  });
  return {
    oid: oidOf(name),
    schema: 'public',
    table: name,
    name: `public.${name}`,
    quotedName: `public.${name}`,
    partitioned: false,
    replicaIdentity: 'default',
    columns: [
      column('v', false),
      ...orderKey.map((one) => column(one.name, true)),
    ],
    orderKey: orderKey.length === 0 ? null : orderKey,
    identityKey: orderKey.length === 0 ? null : orderKey,
    rowFilter: null,
    estimatedRows: null,
    estimatedRowBytes: null,
  };
}

const KEYED = table('keyed', key('id'));
const OTHER = table('other', key('a'), key('b'));
const KEYLESS = table('keyless');
const NONE = (): number => 0;
const ROWS = [
  ['x', '7'],
  ['y', '9'],
];

function planOf(start: Partial<BackfillStart>): BackfillPlan {
  return new BackfillPlan({
    tables: [KEYLESS, KEYED],
    floor: 16n,
    progress: null,
    appliedThrough: null,
    streamedFrom: 16n,
    fresh: true,
    ...start,
  });
}

function progressOf(
  state: TableState,
  more: Partial<SnapshotProgress> = {},
  name = 'keyed',
): SnapshotProgress {
  return {
    floor: 16n,
    complete: false,
    uncertain: null,
    tables: [{ schema: 'public', table: name, oid: oidOf(name), ...state }],
    ...more,
  };
}

function the(plan: BackfillPlan, wanted: PublishedTable): PlannedTable {
  const planned = plan.find(wanted.oid);
  if (planned === null) throw new Error('The plan lacks the table.');
  return planned;
}

function stateOf(plan: BackfillPlan, wanted: PublishedTable) {
  return plan.progress.tables.find((entry) => entry.table === wanted.table);
}

const READING: TableState = {
  state: 'reading',
  bound: { order: [['id', 'pg_catalog.int4']], values: ['9'] },
  lacking: null,
};

describe('the plan of a backfill', () => {
  it('has every table cleared, reads those with a key first, and completes when all is handed over', () => {
    const plan = planOf({});
    expect(plan.uncleared.map(({ table: { name } }) => name)).toEqual([
      'public.keyless',
      'public.keyed',
    ]);
    for (const planned of plan.uncleared) planned.state = { state: 'waiting' };
    const keyed = the(plan, KEYED);
    const keyless = the(plan, KEYLESS);
    expect(plan.next(NONE)).toEqual({ kind: 'rows', table: keyed });
    const part = { kind: 'rows', last: false } as const;
    keyed.read(part, ROWS);
    expect(keyed.readBehind).toEqual(['9']);
    expect(stateOf(plan, KEYED)?.state).toBe('waiting');
    keyed.handOver(part, ROWS, null);
    expect(stateOf(plan, KEYED)).toEqual({
      schema: 'public',
      table: 'keyed',
      oid: KEYED.oid,
      ...READING,
    });
    const last = { kind: 'rows', last: true } as const;
    keyed.read(last, []);
    expect(plan.next(NONE)).toEqual({ kind: 'whole', table: keyless });
    const page = { kind: 'page', first: true, last: true } as const;
    keyless.read(page, ROWS);
    expect(plan.next(NONE)).toEqual({ kind: 'wait' });
    keyed.handOver(last, [], null);
    keyless.handOver(page, ROWS, null);
    expect(plan.next(NONE)).toEqual({ kind: 'complete' });
    expect(plan.progress.complete).toBe(false);
    plan.complete();
    expect(plan.progress.complete).toBe(true);
    expect(plan.next(NONE)).toEqual({ kind: 'wait' });
  });

  it('reads again what was read and is not used', () => {
    const plan = planOf({ progress: progressOf(READING), fresh: false });
    const keyed = the(plan, KEYED);
    const { mark } = keyed;
    keyed.read({ kind: 'rows', last: false }, [['z', '11']]);
    keyed.backTo(mark);
    expect(keyed.readBehind).toEqual(['9']);
    keyed.read({ kind: 'rows', last: true }, [['z', '12']]);
    expect(plan.next(NONE)).toEqual({ kind: 'wait' });
    keyed.rewind();
    expect(keyed.readBehind).toEqual(['9']);
    expect(plan.next(NONE)).toEqual({ kind: 'rows', table: keyed });
  });

  it('reads rows that lack columns at the end of their table, and many of them before', () => {
    const plan = planOf({ progress: progressOf(READING), fresh: false });
    const keyed = the(plan, KEYED);
    expect(plan.next(() => 999).kind).toBe('rows');
    expect(plan.next(() => 1_000)).toEqual({ kind: 'keys', table: keyed });
    keyed.read({ kind: 'keys' }, []);
    expect(plan.next(() => 1_000).kind).toBe('rows');
    const lacking = { columns: ['id'], keys: [['3']] };
    keyed.handOver({ kind: 'keys' }, [], lacking);
    expect(stateOf(plan, KEYED)).toMatchObject({ ...READING, lacking });
    const last = { kind: 'rows', last: true } as const;
    keyed.read(last, []);
    keyed.handOver(last, [], lacking);
    expect(stateOf(plan, KEYED)).toMatchObject({ bound: null, lacking });
    expect(plan.next(() => 1)).toEqual({ kind: 'keys', table: keyed });
    keyed.read({ kind: 'keys' }, []);
    expect(plan.next(() => 1)).toEqual({ kind: 'wait' });
    keyed.handOver({ kind: 'keys' }, [], null);
    expect(stateOf(plan, KEYED)?.state).toBe('done');
  });

  it('is done with a table by a chunk alone, also when the stream leaves no row that lacks columns', () => {
    const plan = planOf({ progress: progressOf(READING), fresh: false });
    const keyed = the(plan, KEYED);
    const lacking = { columns: ['id'], keys: [['3']] };
    const last = { kind: 'rows', last: true } as const;
    keyed.read(last, []);
    keyed.handOver(last, [], lacking);
    // Of a transaction that gave the row another key and deleted it.
    keyed.lacks(null);
    expect(stateOf(plan, KEYED)?.state).toBe('reading');
    expect(plan.next(NONE)).toEqual({ kind: 'keys', table: keyed });
    keyed.read({ kind: 'keys' }, []);
    keyed.handOver({ kind: 'keys' }, [], null);
    expect(keyed.isDone).toBe(true);
  });

  it('tells the progress of each page of a table that is read whole from that of the others', () => {
    const plan = planOf({});
    for (const planned of plan.uncleared) planned.state = { state: 'waiting' };
    const keyless = the(plan, KEYLESS);
    const tokens = [encodeProgress(plan.progress)];
    // The second time around too, after the first was in vain.
    for (const first of [true, false, true]) {
      keyless.handOver({ kind: 'page', first, last: false }, ROWS, null);
      tokens.push(encodeProgress(plan.progress));
    }
    expect(new Set(tokens).size).toBe(4);
  });

  it('begins again with a table of which too many rows lack columns', () => {
    const plan = planOf({ progress: progressOf(READING), fresh: false });
    const keyed = the(plan, KEYED);
    expect(plan.next(() => 'read-again')).toEqual({
      kind: 'begin-again',
      table: keyed,
    });
    keyed.beginAgain();
    expect(keyed.readBehind).toBeNull();
    expect(stateOf(plan, KEYED)?.state).toBe('waiting');
  });

  it('adds a table that is not copied, or is copied already, and leaves one alone that is being copied', () => {
    const plan = planOf({
      tables: [KEYED],
      progress: progressOf({ state: 'done' }, { complete: true }),
    });
    plan.complete();
    const again = plan.add(KEYED);
    expect(again.added).toBe(true);
    expect(plan.progress).toMatchObject({
      complete: false,
      tables: [{ table: 'keyed', state: 'waiting' }],
    });
    expect(plan.next(NONE)).toEqual({ kind: 'wait' });
    again.table.notBefore = 5n;
    expect(plan.next(NONE)).toEqual({ kind: 'rows', table: again.table });
    expect(plan.add(KEYED)).toEqual({ table: again.table, added: false });
    expect(plan.add(OTHER).added).toBe(true);
    expect(plan.tables.length).toBe(2);
  });
});

describe('the plan of a backfill that goes on', () => {
  const going = (
    progress: SnapshotProgress,
    tables: readonly PublishedTable[] = [KEYLESS, KEYED],
    more: Partial<BackfillStart> = {},
  ): BackfillPlan => planOf({ tables, progress, fresh: false, ...more });

  it('reads on behind the row that was read last', () => {
    const plan = going(progressOf(READING));
    expect(the(plan, KEYED).readBehind).toEqual(['9']);
    expect(plan.uncleared).toEqual([]);
    expect(plan.floor).toBe(16n);
  });

  it('has no table that is not in the progress, or not published any more', () => {
    const plan = going(progressOf(READING), [KEYLESS, OTHER]);
    expect(plan.tables).toEqual([]);
    expect(plan.next(NONE)).toEqual({ kind: 'complete' });
  });

  it.each<[string, PublishedTable]>([
    ['another column', table('keyed', key('n'))],
    ['a column more', table('keyed', key('id'), key('n'))],
    ['another type', table('keyed', key('id', 'pg_catalog.text'))],
    [
      'another collation',
      table('keyed', { ...key('id'), quotedCollation: 'pg_catalog."C"' }),
    ],
  ])('begins again without clearing when the key has %s', (_what, now) => {
    const plan = going(progressOf(READING), [now]);
    expect(the(plan, now).readBehind).toBeNull();
    expect(stateOf(plan, now)?.state).toBe('waiting');
    expect(plan.uncleared).toEqual([]);
  });

  it('clears a table that has taken the name of another', () => {
    const now = { ...KEYED, oid: 77 };
    for (const state of [READING, { state: 'waiting' } as const])
      expect(going(progressOf(state), [now]).uncleared.length).toBe(1);
  });

  it('begins again when rows that lack columns are told apart in another way now', () => {
    const lacking = { columns: ['other'], keys: [['1']] };
    const plan = going(progressOf({ ...READING, lacking }));
    expect(stateOf(plan, KEYED)?.state).toBe('waiting');
  });

  it('clears a table without a key of which a part was copied, and one that has lost its key', () => {
    const copying = progressOf({ state: 'copying', pages: 1 }, {}, 'keyless');
    expect(going(copying).uncleared.length).toBe(1);
    const lost = going(progressOf(READING), [table('keyed')]);
    expect(lost.uncleared.length).toBe(1);
  });

  it('begins again when a transaction was applied that may have left rows without columns, and does not come again', () => {
    const uncertain = progressOf(READING, { uncertain: 50n });
    const at = (appliedThrough: bigint | null, streamedFrom: bigint) =>
      stateOf(
        going(uncertain, undefined, { appliedThrough, streamedFrom }),
        KEYED,
      )?.state;
    expect(at(null, 51n)).toBe('reading');
    expect(at(49n, 51n)).toBe('reading');
    expect(at(50n, 51n)).toBe('waiting');
    expect(at(50n, 50n)).toBe('reading');
  });

  it('stays in doubt about a transaction until it has come again', () => {
    const uncertain = progressOf(READING, { uncertain: 50n });
    const from = (streamedFrom: bigint) =>
      going(uncertain, undefined, { appliedThrough: 50n, streamedFrom })
        .uncertain;
    expect(from(50n)).toBe(50n);
    expect(from(51n)).toBeNull();
  });

  it('takes every table for copied when the progress says that all is complete', () => {
    const plan = going(progressOf({ state: 'waiting' }, { complete: true }));
    expect(plan.isCopied(KEYED)).toBe(true);
    expect(plan.isCopied(OTHER)).toBe(false);
    expect(plan.copied).toEqual(['public.keyed']);
    expect(stateOf(plan, KEYED)?.state).toBe('done');
    expect(plan.next(NONE)).toEqual({ kind: 'wait' });
  });
});
