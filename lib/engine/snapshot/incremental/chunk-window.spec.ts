import { describe, expect, it } from 'vitest';
import type { Relation, ReplicaIdentity } from '../../model/relation.js';
import type { Row } from '../../model/change.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { RawRow } from '../raw-row.js';
import type { Chunk } from './chunk.js';
import { ChunkWindow } from './chunk-window.js';
import { parseSnapshot } from './snapshot-text.js';
import type { VisibleTransactions } from './visibility.js';
import { WINDOW_BYTES, type WindowLimits } from './window-ports.js';

interface Shape {
  readonly oid?: number;
  readonly columns?: readonly string[];
  readonly identity?: readonly string[];
  readonly orderKey?: readonly string[] | null;
  readonly replicaIdentity?: ReplicaIdentity;
  readonly table?: string;
}

/** A table as the catalog has it. */
function table(shape: Shape = {}): PublishedTable {
  const relation = announced(shape);
  const { orderKey = ['id'] } = shape;
  return {
    ...relation,
    quotedName: `public."${relation.table}"`,
    partitioned: false,
    columns: relation.columns.map((column) => ({
      ...column,
      quotedName: column.name,
    })),
    orderKey:
      orderKey?.map((name) => ({
        name,
        quotedName: name,
        quotedType: 'integer',
        operatorSchema: 'pg_catalog',
        quotedCollation: null,
      })) ?? null,
    identityKey: null,
    rowFilter: null,
    estimatedRows: null,
    estimatedRowBytes: null,
  };
}

/** The same as the stream has it. */
function announced({
  oid = 1,
  columns = ['id', 'note', 'large'],
  identity = ['id'],
  replicaIdentity = 'default',
  table: name = 't',
}: Shape = {}): Relation {
  return {
    oid,
    schema: 'public',
    table: name,
    name: `public.${name}`,
    replicaIdentity,
    columns: columns.map((column) => ({
      name: column,
      typeOid: 25,
      type: 'text',
      typeModifier: -1,
      key: identity.includes(column),
    })),
  };
}

function snapshot(text: string, inRecovery = false): VisibleTransactions {
  const visible = parseSnapshot(text, inRecovery);
  if (visible === null) throw new Error('no snapshot');
  return visible;
}

/** A window, and what it has said. */
class Stage {
  readonly said: unknown[] = [];
  readonly window: ChunkWindow;
  #lsn = 100n;

  constructor(limits: Partial<WindowLimits> = {}, appliedThrough = 0n) {
    this.window = new ChunkWindow(
      { ...WINDOW_BYTES, pendingChunks: 4, ...limits },
      {
        ready: ({ rows, fills }) =>
          this.said.push({
            rows: Array.from(rows, ([id]) => id),
            ...(fills.length > 0 && {
              fills: fills.map(({ row, columns }) => [row[0], columns]),
            }),
          }),
        askPosition: () => this.said.push('ask'),
        discarded: (chunks, reason) => this.said.push([reason, chunks.length]),
        lackingChanged: ({ name }) => this.said.push(`${name} lacks`),
        lackingUncertain: (commitLsn) => this.said.push(commitLsn),
      },
      appliedThrough,
    );
  }

  /** What was said since this was asked last, without the questions. */
  get heard(): unknown[] {
    return this.said.splice(0).filter((one) => one !== 'ask');
  }

  begin(xid: number, finalLsn = this.#lsn): void {
    const of = { commitTimeMicros: 0n, finalLsn, xid };
    this.window.begin({ kind: 'begin', ...of });
  }

  end(endLsn = (this.#lsn += 10n)): void {
    this.window.ended();
    this.window.commit({
      kind: 'commit',
      commitLsn: endLsn - 10n,
      endLsn,
      commitTimeMicros: 0n,
    });
  }

  /** A transaction, which commits at the next position. */
  stream(xid: number, ...changes: ((window: ChunkWindow) => void)[]): void {
    this.begin(xid);
    for (const change of changes) change(this.window);
    this.end();
  }

  /** Reads a chunk whose position was reached. */
  read(visible: string, ids: readonly string[], more: Partial<Chunk> = {}) {
    this.window.reading();
    return this.window.add(chunk(visible, ids, more));
  }
}

function chunk(
  visible: string,
  ids: readonly string[],
  more: Partial<Chunk> = {},
): Chunk {
  const of = more.table ?? table();
  const rows = ids.map((id): RawRow => [id, 'n', 'l']);
  return {
    table: of,
    rows,
    bytes: rows.length * 3,
    visible: snapshot(visible),
    readAt: 0n,
    flushed: 1_000n,
    ...more,
  };
}

const insert =
  (record: Row, relation = announced()) =>
  (window: ChunkWindow): void =>
    window.change({ kind: 'insert', relation, record });
const remove =
  (record: Row, relation = announced()) =>
  (window: ChunkWindow): void =>
    window.change({ kind: 'delete', relation, old: { kind: 'key', record } });
const update =
  (
    record: Row,
    unchanged: readonly string[] = [],
    old: Row | null = null,
    relation = announced(),
  ) =>
  (window: ChunkWindow): void =>
    window.change({
      kind: 'update',
      relation,
      record,
      unchanged,
      old: old === null ? null : { kind: 'key', record: old },
    });
const truncate =
  (...relations: Relation[]) =>
  (window: ChunkWindow): void =>
    window.change({
      kind: 'truncate',
      relations,
      cascade: false,
      restartIdentity: false,
    });

function tracking(
  limits: Partial<WindowLimits> = {},
  of: PublishedTable = table(),
): Stage {
  const stage = new Stage(limits);
  stage.window.track(of, null);
  return stage;
}

describe('A chunk', () => {
  it('waits until the stream has reached its position, and no longer', () => {
    const stage = tracking();
    expect(stage.read('10:10:', ['1'], { readAt: 200n })).toBe('pending');
    stage.window.keepalive(199n);
    expect(stage.heard).toEqual([]);
    stage.window.keepalive(200n);
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });

  it('goes before the transaction that commits at its position, and behind the one that ends there', () => {
    const stage = tracking();
    stage.read('10:10:', ['1'], { readAt: 200n });
    stage.read('10:10:', ['2'], { readAt: 230n });
    stage.begin(11, 199n);
    stage.end(200n);
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
    stage.begin(12, 230n);
    expect(stage.heard).toEqual([{ rows: ['2'] }]);
  });

  it('never comes in the middle of a transaction: part of that is behind it, and part before', () => {
    const stage = tracking();
    stage.window.reading();
    stage.begin(11, 500n);
    expect(stage.window.add(chunk('10:10:', ['1'], { readAt: 1n }))).toBe(
      'pending',
    );
    stage.window.keepalive(600n);
    expect(stage.heard).toEqual([]);
    update({ id: '1', note: 'x', large: 'y' })(stage.window);
    stage.end(510n);
    expect(stage.heard).toEqual([{ rows: [] }]);
  });

  it('waits for those before it', () => {
    const stage = tracking();
    stage.read('10:10:', ['1'], { readAt: 300n });
    stage.read('10:10:', ['2'], { readAt: 200n });
    stage.window.keepalive(250n);
    expect(stage.heard).toEqual([]);
    stage.window.keepalive(300n);
    expect(stage.heard).toEqual([{ rows: ['1'] }, { rows: ['2'] }]);
  });

  it('never waits for a position again: the stream does not go back', () => {
    const stage = tracking();
    stage.window.keepalive(300n);
    stage.window.keepalive(100n);
    stage.read('10:10:', ['1'], { readAt: 300n });
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });

  it('is reached when a caught-up server tells the same position again and again', () => {
    const stage = tracking();
    stage.window.keepalive(100n);
    stage.read('10:10:', ['1'], { readAt: 200n });
    for (let time = 1; time < 4; time += 1) stage.window.keepalive(100n);
    expect(stage.heard).toEqual([]);
    stage.window.keepalive(100n);
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });

  it('is not reached when something came in between', () => {
    const stage = tracking();
    stage.read('10:10:', ['1'], { readAt: 200n });
    for (let time = 1; time < 4; time += 1) stage.window.keepalive(100n);
    stage.stream(11, insert({ id: '5', note: '', large: '' }));
    for (let time = 1; time < 4; time += 1) stage.window.keepalive(100n);
    expect(stage.heard).toEqual([]);
    stage.window.keepalive(100n);
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });

  it('is not reached while the log is not flushed up to it, whatever the server tells: a commit may be visible before', () => {
    const stage = tracking();
    stage.read('10:10:', ['1'], { readAt: 200n, flushed: 150n });
    expect(stage.window.awaitsFlush).toBe(true);
    for (let time = 0; time < 9; time += 1) stage.window.keepalive(150n);
    stage.window.flushed(199n);
    for (let time = 0; time < 9; time += 1) stage.window.keepalive(150n);
    expect(stage.said.splice(0)).toEqual([]);
    stage.window.flushed(200n);
    expect(stage.window.awaitsFlush).toBe(false);
    expect(stage.said.splice(0)).toEqual(['ask']);
    for (let time = 1; time < 4; time += 1) stage.window.keepalive(150n);
    expect(stage.heard).toEqual([]);
    stage.window.keepalive(150n);
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });

  it('needs nobody to say that the log is flushed when the stream comes up to it', () => {
    const stage = tracking();
    stage.read('10:10:', ['1'], { readAt: 200n, flushed: 150n });
    stage.stream(11, insert({ id: '5', note: '', large: '' }));
    stage.begin(12, 200n);
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
    expect(stage.window.awaitsFlush).toBe(false);
  });

  it('has the server asked, once at a time and until it is reached', () => {
    const stage = tracking();
    stage.read('10:10:', ['1'], { readAt: 200n });
    stage.read('10:10:', ['2'], { readAt: 200n });
    expect(stage.said.splice(0)).toEqual(['ask']);
    stage.window.keepalive(100n);
    expect(stage.said.splice(0)).toEqual(['ask']);
    stage.begin(11);
    stage.window.keepalive(110n);
    expect(stage.said.splice(0)).toEqual([]);
    stage.end();
    expect(stage.said.splice(0)).toEqual(['ask']);
    stage.window.keepalive(200n);
    expect(stage.said.splice(0)).toEqual([{ rows: ['1'] }, { rows: ['2'] }]);
  });

  it('is not read while too many wait or are not taken, or too much', () => {
    const stage = tracking({ pendingChunks: 2 });
    const [first, second] = [chunk('10:10:', ['1']), chunk('10:10:', ['2'])];
    stage.window.reading();
    stage.window.add(first);
    expect(stage.window.mayRead).toBe(true);
    stage.window.reading();
    stage.window.add({ ...second, readAt: 900n });
    expect(stage.window.mayRead).toBe(false);
    stage.window.taken(first);
    expect(stage.window.mayRead).toBe(true);

    const narrow = tracking({ pendingBytes: 4 });
    narrow.window.reading();
    narrow.window.add(chunk('10:10:', ['1', '2']));
    expect(narrow.window.mayRead).toBe(false);
  });
});

describe('A row of a chunk', () => {
  it('is left out when the stream has changed it in a transaction that the chunk does not see', () => {
    const stage = tracking();
    stage.stream(11, update({ id: '1', note: '', large: '' }));
    stage.stream(12, insert({ id: '2', note: '', large: '' }));
    stage.stream(13, remove({ id: '3' }));
    stage.stream(14, update({ id: '5', note: '', large: '' }, [], { id: '4' }));
    stage.read('11:15:11,12,13,14', ['1', '2', '3', '4', '5', '6']);
    expect(stage.heard).toEqual([{ rows: ['6'] }]);
  });

  it('stays when the chunk sees the transaction', () => {
    const stage = tracking();
    stage.stream(11, update({ id: '1', note: '', large: '' }));
    stage.stream(12, update({ id: '2', note: '', large: '' }));
    stage.read('12:14:12', ['1', '2']);
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });

  it('is left out although the transaction came long before: a commit may be streamed before it is visible', () => {
    const stage = tracking();
    stage.stream(11, update({ id: '2', note: '', large: '' }));
    stage.read('11:13:11', ['1']);
    stage.read('11:14:11', ['2', '3']);
    stage.read('14:14:', ['2']);
    expect(stage.heard).toEqual([
      { rows: ['1'] },
      { rows: ['3'] },
      { rows: ['2'] },
    ]);
    expect(stage.window.changedBytes).toBe(0);
  });

  it('is told by its replica identity, also when it is read by another key', () => {
    const shape = { identity: ['note'], orderKey: ['id'] };
    const of = table(shape);
    const stage = tracking({}, of);
    stage.stream(11, remove({ note: 'n' }, announced(shape)));
    stage.read('10:10:', ['1', '2'], { table: of });
    expect(stage.heard).toEqual([{ rows: [] }]);
  });

  it('is told by its key where the identity is every column: partitions may have another than their root', () => {
    const shape: Shape = {
      identity: ['id', 'note', 'large'],
      replicaIdentity: 'full',
    };
    const of = table(shape);
    const stage = tracking({}, of);
    const changed = { id: '1', note: 'new' };
    stage.stream(11, update(changed, ['large'], null, announced(shape)));
    const old = { id: '2', note: null, large: null };
    stage.stream(12, remove(old, announced(shape)));
    stage.read('10:10:', ['1', '2', '3'], { table: of });
    expect(stage.heard).toEqual([{ rows: ['3'], fills: [['1', [2]]] }]);
  });

  it('is read again where there is none and it was changed all the same', () => {
    const shape: Shape = { identity: [], replicaIdentity: 'nothing' };
    const of = table(shape);
    const stage = tracking({}, of);
    stage.stream(11, update({ id: '1' }, [], null, announced(shape)));
    stage.read('10:10:', ['1'], { table: of });
    expect(stage.heard).toEqual([['identity', 1]]);
  });

  it('is told by the table, whatever that is called', () => {
    const stage = new Stage();
    stage.window.track(table({ oid: 7, table: 'Order' }), null);
    const before = announced({ oid: 7, table: 'was called otherwise' });
    stage.stream(11, remove({ id: '1' }, before));
    stage.stream(
      12,
      remove({ id: '2' }, announced({ oid: 8, table: 'Order' })),
    );
    stage.read('10:10:', ['1', '2'], {
      table: table({ oid: 7, table: 'Order' }),
    });
    expect(stage.heard).toEqual([{ rows: ['2'] }]);
  });

  it('goes with a truncate that the chunk does not see', () => {
    const stage = tracking();
    stage.stream(11, truncate(announced({ oid: 2 }), announced()));
    stage.read('10:10:', ['1']);
    stage.read('12:12:', ['1']);
    expect(stage.heard).toEqual([{ rows: [] }, { rows: ['1'] }]);
  });

  it('stays where nothing identifies it: only inserts come, and those the chunk does not have', () => {
    const shape: Shape = { identity: [], replicaIdentity: 'nothing' };
    const of = table(shape);
    const stage = tracking({}, of);
    stage.stream(11, insert({ id: '1' }, announced(shape)));
    stage.read('10:10:', ['2'], { table: of });
    expect(stage.heard).toEqual([{ rows: ['2'] }]);
  });

  it('is told by names when columns are added meanwhile', () => {
    const stage = tracking();
    const grown = announced({ columns: ['new', 'large', 'id'] });
    stage.stream(11, remove({ id: '1' }, grown));
    stage.stream(12, update({ id: '2', new: 'x' }, ['large'], null, grown));
    stage.read('10:10:', ['1', '2', '3']);
    expect(stage.heard).toEqual([{ rows: ['3'], fills: [['2', [2]]] }]);
  });

  it('is read again when the stream tells rows apart in another way', () => {
    const stage = tracking();
    const other = announced({ identity: ['note'] });
    stage.read('10:10:', ['1'], { readAt: 500n });
    stage.stream(11, remove({ note: 'n' }, other));
    stage.window.keepalive(500n);
    expect(stage.heard).toEqual([['identity', 1]]);
    stage.read('12:12:', ['1']);
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });
});

describe('Columns that an update did not bring', () => {
  it('are filled in, and only these', () => {
    const stage = tracking();
    stage.stream(11, update({ id: '1', note: 'x' }, ['large']));
    stage.read('10:10:', ['1', '2']);
    expect(stage.heard).toEqual([{ rows: ['2'], fills: [['1', [2]]] }]);
  });

  it('are not, when another update brought them', () => {
    const stage = tracking();
    stage.stream(11, update({ id: '1', note: 'x', large: 'y' }));
    stage.stream(12, update({ id: '1', note: 'x' }, ['large']));
    stage.stream(13, update({ id: '2', note: 'x' }, ['large']));
    stage.stream(14, update({ id: '2', large: 'y' }, ['note']));
    stage.read('10:10:', ['1', '2']);
    expect(stage.heard).toEqual([{ rows: [] }]);
  });

  it('are not, when the row began or ended meanwhile', () => {
    const stage = tracking();
    const partly = (id: string) => update({ id, note: 'x' }, ['large']);
    stage.stream(11, partly('1'), remove({ id: '1' }));
    stage.stream(12, remove({ id: '2' }), insert({ id: '2' }), partly('2'));
    stage.stream(13, partly('3'), update({ id: '9' }, ['large'], { id: '3' }));
    stage.read('10:10:', ['1', '2', '3']);
    expect(stage.heard).toEqual(['public.t lacks', { rows: [] }]);
  });
});

describe('A row that changed its key without all of its columns', () => {
  const moved = update({ id: '2', note: 'x' }, ['large'], { id: '1' });
  const lacking = [{ identity: ['2'], columns: ['large'] }];

  it('lacks them, which is told before its transaction is handed over', () => {
    const stage = tracking();
    stage.begin(11);
    moved(stage.window);
    stage.window.ended();
    expect(stage.heard).toEqual(['public.t lacks']);
    expect(stage.window.lacking(1)).toEqual(lacking);
  });

  it('is given them when it was searched by its key', () => {
    const stage = tracking();
    stage.stream(11, moved);
    expect(stage.heard).toEqual(['public.t lacks']);
    stage.read('12:12:', ['2'], { keys: [['2']] });
    expect(stage.heard).toEqual([{ rows: [], fills: [['2', [2]]] }]);
    expect(stage.window.lacking(1)).toEqual([]);
  });

  it('goes on to lack them when a snapshot does not see it yet', () => {
    const stage = tracking();
    stage.stream(11, moved);
    stage.read('11:12:11', [], { keys: [['2']] });
    expect(stage.window.lacking(1)).toEqual(lacking);
  });

  it('lacks nothing more when it was read in order', () => {
    const stage = tracking();
    stage.stream(11, moved);
    stage.read('12:12:', ['2']);
    expect(stage.heard).toEqual(['public.t lacks', { rows: ['2'] }]);
    expect(stage.window.lacking(1)).toEqual([]);
  });

  it('is given them in order, when it was changed once more', () => {
    const stage = tracking();
    stage.stream(11, moved);
    stage.stream(12, update({ id: '2', note: 'y' }, ['large']));
    stage.read('12:13:12', ['2']);
    expect(stage.heard).toEqual([
      'public.t lacks',
      { rows: [], fills: [['2', [2]]] },
    ]);
    expect(stage.window.lacking(1)).toEqual([]);
  });

  it('lacks only what no update has brought since', () => {
    const shape = { columns: ['id', 'note', 'large', 'other'] };
    const stage = tracking({}, table(shape));
    const of = announced(shape);
    const both = ['large', 'other'];
    stage.stream(11, update({ id: '2' }, both, { id: '1' }, of));
    stage.stream(12, update({ id: '2', other: 'y' }, ['large'], null, of));
    expect(stage.window.lacking(1)).toEqual(lacking);
    stage.stream(13, update({ id: '2', large: 'y' }, ['other'], null, of));
    expect(stage.window.lacking(1)).toEqual([]);
  });

  it.each([
    ['deleted', remove({ id: '2' })],
    ['inserted', insert({ id: '2', note: 'x', large: 'y' })],
    ['truncated', truncate(announced())],
  ])('lacks nothing when it is %s', (_, change) => {
    const stage = tracking();
    stage.stream(11, moved);
    stage.stream(12, change);
    expect(stage.window.lacking(1)).toEqual([]);
  });

  it('lacks them under the key that it has in the end', () => {
    const stage = tracking();
    stage.stream(11, moved);
    stage.stream(12, update({ id: '3' }, ['large'], { id: '2' }));
    expect(stage.window.lacking(1)).toEqual([
      { identity: ['3'], columns: ['large'] },
    ]);
  });

  it('is read as a whole when only its key was stored', () => {
    const stage = new Stage();
    stage.window.track(table(), 12n, [['2'], ['7']]);
    expect(stage.window.lacking(1)).toEqual([
      { identity: ['2'], columns: null },
      { identity: ['7'], columns: null },
    ]);
    // The other is there no more.
    stage.read('12:12:', ['2'], { keys: [['2'], ['7']] });
    expect(stage.heard).toEqual([{ rows: ['2'] }]);
    expect(stage.window.lacking(1)).toEqual([]);
  });

  it.each([11, 12, 13])(
    'has the table read from its beginning when there are too many of them, by chunks that see each: %i',
    (unseen) => {
      const stage = tracking({ lackingBytes: 200 });
      stage.read('10:10:', ['8'], { readAt: 500n });
      stage.stream(11, moved);
      expect(stage.heard).toEqual(['public.t lacks']);
      stage.begin(12);
      update({ id: '4' }, ['large'], { id: '3' })(stage.window);
      expect(stage.heard).toEqual([['lacking', 1]]);
      expect(stage.window.lacking(1)).toBe('read-again');
      stage.end();
      stage.stream(13, update({ id: '6' }, ['large'], { id: '5' }));
      expect(stage.heard).toEqual(['public.t lacks', 'public.t lacks']);
      stage.window.readAgain(1);
      expect(stage.window.lacking(1)).toEqual([]);
      expect(stage.read(`${unseen}:14:${unseen}`, ['9'])).toBe('stale');
      expect(stage.read('14:14:', ['9'])).toBe('pending');
    },
  );

  it('leaves nothing of what is being read when there are too many', () => {
    const stage = tracking({ lackingBytes: 10 });
    stage.window.reading();
    stage.begin(11);
    moved(stage.window);
    expect(stage.window.add(chunk('12:12:', ['9']))).toBe('stale');
    stage.window.reading();
    stage.end();
    stage.window.readAgain(1);
    expect(stage.window.add(chunk('12:12:', ['9']))).toBe('stale');
    expect(stage.read('12:12:', ['9'])).toBe('pending');
  });

  it('may be in a transaction that is handed over before its end', () => {
    const stage = tracking();
    stage.begin(11, 700n);
    stage.window.arriving();
    expect(stage.heard).toEqual([700n]);
  });
});

describe('A table without a key', () => {
  const shape: Shape = {
    identity: ['id', 'note', 'large'],
    orderKey: null,
    replicaIdentity: 'full',
  };
  const of = table(shape);
  const row = insert({ id: '1', note: 'n', large: 'l' }, announced(shape));

  it('is contended when a change was received that its pages do not see', () => {
    const stage = tracking({}, of);
    stage.read('11:12:11', ['1'], { table: of });
    stage.stream(11, row);
    stage.read('11:12:11', ['2'], { table: of });
    expect(stage.heard).toEqual([{ rows: ['1'] }, ['contended', 1]]);
  });

  it('is, also by a change from before its first page', () => {
    const stage = tracking({}, of);
    stage.stream(11, row);
    stage.read('11:12:11', ['1'], { table: of });
    expect(stage.heard).toEqual([['contended', 1]]);
  });

  it('is by a truncate too', () => {
    const stage = tracking({}, of);
    stage.stream(11, truncate(announced(shape)));
    stage.read('11:12:11', ['1'], { table: of });
    expect(stage.heard).toEqual([['contended', 1]]);
  });

  it('is not by what its pages see, nor by other tables', () => {
    const stage = tracking({}, of);
    stage.stream(11, row);
    stage.stream(12, remove({ id: '1' }, announced({ oid: 2 })));
    stage.read('12:12:', ['1'], { table: of });
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });

  it('stays contended for the pages of one snapshot', () => {
    const stage = tracking({}, of);
    const page = (id: string, readAt = 0n) =>
      chunk('11:12:11', [id], { table: of, readAt });
    stage.window.reading();
    expect(stage.window.add(page('1', 500n), true)).toBe('pending');
    stage.window.polled(snapshot('20:20:'));
    stage.stream(11, row);
    stage.window.keepalive(500n);
    expect(stage.heard).toEqual([['contended', 1]]);
    expect(stage.window.add(page('2'), true)).toBe('stale');
    expect(stage.window.add(page('3'))).toBe('stale');
  });
});

describe('What is kept of changed rows', () => {
  const changes = (xid: number, count: number) => (stage: Stage) =>
    stage.stream(
      xid,
      ...Array.from({ length: count }, (_, id) => remove({ id: `${id}` })),
    );

  it('is forgotten by a poll while nothing is read, also in the middle of a transaction', () => {
    const stage = tracking();
    stage.window.polled(snapshot('11:11:'));
    stage.begin(11);
    remove({ id: '1' })(stage.window);
    expect(stage.window.changedBytes).toBeGreaterThan(0);
    stage.window.polled(snapshot('12:12:'));
    remove({ id: '2' })(stage.window);
    expect(stage.window.changedBytes).toBe(0);
  });

  it('is not forgotten by a snapshot younger than a chunk that waits or is read', () => {
    const stage = tracking();
    stage.read('11:11:', ['1'], { readAt: 500n });
    stage.read('12:12:', ['2'], { readAt: 600n });
    changes(11, 5)(stage);
    stage.window.polled(snapshot('12:12:'));
    stage.window.keepalive(500n);
    expect(stage.heard).toEqual([{ rows: [] }]);
    stage.window.keepalive(600n);
    expect(stage.heard).toEqual([{ rows: ['2'] }]);

    stage.window.reading();
    changes(12, 5)(stage);
    stage.window.polled(snapshot('13:13:'));
    stage.window.add(chunk('12:12:', ['1', '7']));
    expect(stage.heard).toEqual([{ rows: ['7'] }]);
  });

  it('counts a row once, however often it is changed', () => {
    const stage = tracking();
    changes(11, 1)(stage);
    const once = stage.window.changedBytes;
    for (let xid = 12; xid < 100; xid++) changes(xid, 1)(stage);
    expect(stage.window.changedBytes).toBe(once);
  });

  it('is given up when it is too much: chunks are read once more, and have to see all of it', () => {
    const stage = tracking({ changedBytes: 1_000 });
    stage.read('11:11:', ['1'], { readAt: 900n });
    stage.read('11:11:', ['2'], { readAt: 900n });
    stage.window.reading();
    stage.begin(11);
    for (let id = 0; id < 10_000; id++) remove({ id: `${id}` })(stage.window);
    expect(stage.heard).toEqual([['memory', 2]]);
    expect(stage.window.changedBytes).toBe(0);
    // It was read behind the two.
    expect(stage.window.add(chunk('11:11:', ['3']))).toBe('stale');
    stage.end();
    expect(stage.read('11:12:11', ['1'])).toBe('stale');
    expect(stage.read('12:12:', ['1'])).toBe('pending');
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });

  it('is not, for a huge transaction that every chunk sees', () => {
    const stage = tracking({ changedBytes: 1_000 });
    stage.read('12:12:', ['1'], { readAt: 900n });
    changes(11, 10_000)(stage);
    stage.window.keepalive(900n);
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
  });

  it('goes with its table, and does not concern another', () => {
    const stage = new Stage();
    stage.window.track(table(), null);
    stage.window.track(table({ oid: 2 }), null);
    changes(11, 3)(stage);
    stage.window.untrack(1);
    expect(stage.window.changedBytes).toBe(0);
    stage.read('10:10:', ['1'], { table: table({ oid: 2 }) });
    expect(stage.heard).toEqual([{ rows: ['1'] }]);
    expect(stage.read('20:20:', ['1'])).toBe('stale');
  });
});

it('A chunk is not used that may not see what came before its table was tracked', () => {
  const stage = new Stage();
  stage.window.track(table(), 15n);
  expect(stage.read('14:20:14', ['1'])).toBe('stale');
  expect(stage.read('15:20:15', ['1'])).toBe('pending');
  stage.window.usableFrom(1, 18n);
  expect(stage.read('15:20:15', ['1'])).toBe('stale');
});

it('What was applied before and comes again is not looked at: the progress that is stored is younger', () => {
  const stage = new Stage({}, 110n);
  stage.window.track(table(), 20n, [['2']]);
  stage.begin(11, 110n);
  remove({ id: '2' })(stage.window);
  update({ id: '4' }, ['large'], { id: '3' })(stage.window);
  stage.end(120n);
  expect(stage.heard).toEqual([]);
  expect(stage.window.changedBytes).toBe(0);
  expect(stage.window.lacking(1)).toEqual([{ identity: ['2'], columns: null }]);
  stage.begin(12, 120n);
  remove({ id: '2' })(stage.window);
  expect(stage.window.lacking(1)).toEqual([]);
});

it('Nothing is kept of tables that are not tracked', () => {
  const stage = new Stage();
  expect(stage.window.active).toBe(false);
  stage.stream(11, remove({ id: '1' }));
  stage.begin(12);
  stage.window.arriving();
  stage.end();
  expect(stage.heard).toEqual([]);
  expect(stage.window.changedBytes).toBe(0);
});
