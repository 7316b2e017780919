import { describe, expect, it } from 'vitest';
import type { Column, Relation } from '../model/relation.js';
import type { SchemaChange } from '../model/schema-change.js';
import { RelationHistory } from './relation-history.js';
import { SchemaWatch } from './schema-watch.js';
import {
  readRelations,
  writeRelations,
  type StoredRelations,
} from './stored-relations.js';

function table(oid: number, name: string, columns: string): Relation {
  return {
    oid,
    schema: 'public',
    table: name,
    name: `public.${name}`,
    replicaIdentity: 'default',
    columns: columns.split('').map((letter): Column => ({
      name: letter,
      typeOid: 25,
      type: 'text',
      typeModifier: -1,
      key: false,
    })),
  };
}

/** A pipeline with its connections, of which one is open. */
class Stage {
  readonly told: string[] = [];
  watch: SchemaWatch;

  constructor(readonly history = new RelationHistory()) {
    this.watch = this.#connect();
  }

  reconnect(): void {
    this.watch = this.#connect();
  }

  /** A row of each; what nobody accepted. */
  row(lsn: bigint, ...relations: Relation[]): SchemaChange[] {
    for (const relation of relations) this.watch.announce(relation);
    return this.watch.meet(relations, lsn);
  }

  /** A whole transaction with a row of each, which is durable then. */
  apply(lsn: bigint, ...relations: Relation[]): SchemaChange[] {
    this.watch.begin();
    const refused = this.row(lsn, ...relations);
    this.history.durable(this.watch.end(), lsn);
    return refused;
  }

  accept(changes: readonly SchemaChange[], lsn: bigint): void {
    for (const change of changes) this.history.pass(change, lsn);
    this.reconnect();
  }

  #connect(): SchemaWatch {
    return new SchemaWatch(this.history, ({ relation, detail }) =>
      this.told.push(`${relation}: ${detail}`),
    );
  }
}

function storedBy({ history }: Stage): StoredRelations {
  return readRelations(
    writeRelations(history.unstored, history.nextNumber, (relation) =>
      history.known.owns(relation),
    ),
  );
}

/** The next process, which knows what was stored. */
function restarted(stage: Stage): Stage {
  const next = new Stage();
  next.history.resume(storedBy(stage), null);
  next.reconnect();
  return next;
}

function kinds(changes: readonly SchemaChange[]): string[] {
  return changes.map(({ change, relation }) => `${change} ${relation}`);
}

describe('a table that is announced', () => {
  it('is known silently, and compared from then on, over connections', () => {
    const stage = new Stage();
    expect(stage.apply(1n, table(1, 't', 'ab'))).toEqual([]);
    stage.reconnect();
    expect(stage.apply(2n, table(1, 't', 'ab'))).toEqual([]);
    expect(kinds(stage.row(3n, table(1, 't', 'a')))).toEqual([
      'column_dropped public.t',
    ]);
    expect(stage.told).toEqual([]);
  });

  it('counts when a row of it follows', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 'part', 'ab'), table(2, 'root', 'ab'));
    const root = table(2, 'root', 'ab');
    stage.watch.announce(root);
    stage.watch.announce(table(9, 'part', 'xy'));
    expect(stage.watch.meet([root], 2n)).toEqual([]);
    expect(stage.watch.waiting).toBe(false);
  });

  it('gives its new shape to the transaction that carries it, and only then', () => {
    const stage = new Stage();
    const [old, now] = [table(1, 't', 'a'), table(1, 't', 'ab')];
    stage.row(1n, old);
    expect(stage.watch.end()).toEqual([old]);
    stage.row(2n, table(1, 't', 'a'));
    expect(stage.watch.end()).toEqual([]);
    stage.row(3n, now);
    const shared = stage.watch.share();
    expect(shared).toEqual([now]);
    stage.row(3n, table(2, 'u', 'a'));
    expect(shared).toHaveLength(2);
    stage.watch.end();
    stage.row(4n, table(3, 'v', 'a'));
    expect(shared).toHaveLength(2);
  });

  it('with another order of its columns is the new shape', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'ab'));
    expect(stage.row(2n, table(1, 't', 'ba'))).toEqual([]);
    expect(stage.watch.end()).toHaveLength(1);
    expect(stage.told).toEqual([]);
  });
});

describe('a change', () => {
  it('that is additive is told once, though its transaction comes again', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'a'));
    for (let connection = 0; connection < 3; connection += 1) {
      stage.reconnect();
      expect(stage.row(2n, table(1, 't', 'ab'))).toEqual([]);
    }
    expect(stage.told).toEqual(['public.t: added "b"']);
  });

  it('that was accepted passes when its transaction comes again, from its first shape on', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'abc'));
    const shapes = ['abc', 'ab', 'a'].map((columns) => table(1, 't', columns));
    const read = (): SchemaChange[] => {
      for (const shape of shapes) {
        const refused = stage.row(2n, shape);
        if (refused.length > 0) return refused;
      }
      return [];
    };
    for (const dropped of ['"c"', '"b"']) {
      const refused = read();
      expect(refused).toMatchObject([{ detail: `dropped ${dropped}` }]);
      stage.accept(refused, 2n);
    }
    expect(read()).toEqual([]);
    stage.history.durable(stage.watch.end(), 2n);
    stage.reconnect();
    expect(stage.row(3n, table(1, 't', 'a'))).toEqual([]);
  });

  it('that was accepted is another one when it is made again later', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'ab'));
    stage.accept(stage.row(2n, table(1, 't', 'a')), 2n);
    stage.apply(2n, table(1, 't', 'a'));
    stage.apply(3n, table(1, 't', 'ab'));
    expect(stage.row(4n, table(1, 't', 'a'))).toHaveLength(1);
  });

  it('of a transaction that never became durable is as if it had not been seen', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'a'));
    stage.row(2n, table(1, 't', 'ab'));
    stage.reconnect();
    expect(stage.row(3n, table(1, 't', 'a'))).toEqual([]);
  });
});

describe('a name', () => {
  it('that another table has is noticed, and so is a table with another name', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 'a', 'x'), table(2, 'b', 'x'));
    expect(kinds(stage.row(2n, table(9, 'a', 'x')))).toEqual([
      'table_replaced public.a',
    ]);
    stage.reconnect();
    expect(kinds(stage.row(2n, table(2, 'c', 'x')))).toEqual([
      'table_renamed public.b',
    ]);
    stage.reconnect();
    expect(kinds(stage.row(2n, table(2, 'c', '')))).toEqual([
      'table_renamed public.b',
      'column_dropped public.b',
    ]);
  });

  it.each([
    ['the first', 1],
    ['the second', 2],
  ])('that swaps is noticed for both, when %s has a row first', (_, first) => {
    const stage = new Stage();
    stage.apply(1n, table(1, 'a', 'x'), table(2, 'b', 'x'));
    const swapped = [table(1, 'b', 'x'), table(2, 'a', 'x')];
    if (first === 2) swapped.reverse();
    const seen = swapped.flatMap((relation, at) => {
      const lsn = BigInt(at + 2);
      const refused = stage.row(lsn, relation);
      stage.accept(refused, lsn);
      expect(stage.apply(lsn, relation)).toEqual([]);
      return kinds(refused);
    });
    const [one, other] = first === 1 ? ['a', 'b'] : ['b', 'a'];
    expect(seen).toEqual([
      `table_replaced public.${other}`,
      `table_renamed public.${one}`,
      `table_renamed public.${other}`,
    ]);
    stage.reconnect();
    expect(stage.apply(5n, table(1, 'b', 'x'), table(2, 'a', 'x'))).toEqual([]);
  });

  it('that swaps is noticed once when both tables are truncated together', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 'a', 'x'), table(2, 'b', 'x'));
    const swapped = [table(1, 'b', 'x'), table(2, 'a', 'x')];
    const refused = stage.row(2n, ...swapped);
    expect(kinds(refused)).toEqual([
      'table_replaced public.b',
      'table_renamed public.a',
      'table_renamed public.b',
    ]);
    stage.accept(refused, 2n);
    expect(stage.apply(2n, ...swapped)).toEqual([]);
  });

  it('stays with its new owner when the old one is called otherwise', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 'a', 'x'), table(2, 'b', 'x'));
    for (const [lsn, relation] of [
      [2n, table(2, 'a', 'x')],
      [3n, table(1, 'c', 'x')],
    ] as const) {
      stage.accept(stage.row(lsn, relation), lsn);
      stage.apply(lsn, relation);
    }
    expect(kinds(stage.row(4n, table(9, 'a', 'x')))).toEqual([
      'table_replaced public.a',
    ]);
  });

  it('that was swapped has its new owner after a restart, whatever the OIDs', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 'a', 'x'), table(2, 'b', 'x'));
    for (const relation of [table(1, 'b', 'x')]) {
      stage.accept(stage.row(2n, relation), 2n);
      stage.apply(2n, relation);
    }
    const json = writeRelations(
      stage.history.unstored,
      stage.history.nextNumber,
    );
    const next = new Stage();
    next.history.resume(readRelations(json), 2n);
    next.reconnect();
    expect(next.row(3n, table(1, 'b', 'x'))).toEqual([]);
    expect(kinds(next.row(3n, table(2, 'a', 'x')))).toEqual([
      'table_renamed public.b',
    ]);
  });

  it('that its table lost is free when the new owner is called otherwise, over restarts', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 'a', 'x'));
    for (const [lsn, relation] of [
      [2n, table(2, 'a', 'x')],
      [3n, table(2, 'b', 'x')],
    ] as const) {
      stage.accept(stage.row(lsn, relation), lsn);
      stage.apply(lsn, relation);
    }
    for (const { history } of [stage, restarted(stage)]) {
      const here = new Stage(history);
      expect(here.row(4n, table(3, 'a', 'x'))).toEqual([]);
      expect(kinds(here.row(4n, table(1, 'c', '')))).toEqual([
        'table_renamed public.a',
        'column_dropped public.a',
      ]);
    }
    const connected = restarted(stage);
    connected.history.resume(storedBy(stage), 3n);
    connected.reconnect();
    expect(connected.row(4n, table(3, 'a', 'x'))).toEqual([]);
  });

  it('stays with its new owner over a reconnect and a restart', () => {
    const stage = new Stage();
    const { history } = stage;
    const patches: string[] = [];
    const store = (): void => {
      const hasName = (one: Relation): boolean => history.known.owns(one);
      patches.push(
        writeRelations(history.unstored, history.nextNumber, hasName),
      );
      history.stored(new Map(history.unstored));
    };
    const read = (): StoredRelations =>
      readRelations(
        `{${patches.map((patch) => patch.slice(1, -1)).join(',')}}`,
      );
    stage.apply(1n, table(1, 'a', 'x'));
    store();
    const { unstored } = history.with([table(2, 'a', 'x')]);
    stage.accept(stage.row(2n, table(2, 'a', 'x')), 2n);
    stage.apply(2n, table(2, 'a', 'x'));
    // The transaction has stored the owner; the loser is still to be stored when the connection is lost.
    patches.push(writeRelations(new Map([[2, table(2, 'a', 'x')]]), 1));
    history.stored(new Map([[2, history.unstored.get(2) ?? null]]));
    expect([...unstored.keys()]).toEqual([2, 1]);
    history.resume(read(), 2n);
    store();
    const next = new Stage();
    next.history.resume(read(), 2n);
    next.reconnect();
    expect(next.history.known.named('public.a')?.oid).toBe(2);
    expect(kinds(next.row(3n, table(9, 'a', 'x')))).toEqual([
      'table_replaced public.a',
    ]);
  });

  it('that its table has again is known to be its own, over restarts', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 'a', 'x'), table(2, 'b', 'x'));
    for (const [lsn, relation] of [
      [2n, table(1, 'b', 'x')],
      [3n, table(1, 'a', 'x')],
    ] as const) {
      stage.accept(stage.row(lsn, relation), lsn);
      stage.apply(lsn, relation);
    }
    expect(stage.apply(4n, table(2, 'b', 'x'))).toEqual([]);
    for (const { history } of [stage, restarted(stage)]) {
      expect(kinds(new Stage(history).row(5n, table(9, 'b', 'x')))).toEqual([
        'table_replaced public.b',
      ]);
    }
  });
});

describe('a transaction that was applied before', () => {
  it('is compared with nothing, and teaches only what nobody knows', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'a'));
    for (const old of [
      table(1, 't', 'abc'),
      table(2, 'u', 'a'),
      table(2, 'u', 'ab'),
    ]) {
      stage.watch.announce(old);
      stage.watch.passOver([old]);
    }
    stage.watch.begin();
    expect(stage.watch.share()).toEqual([table(2, 'u', 'ab')]);
    expect(stage.row(9n, table(1, 't', 'a'))).toEqual([]);
    expect(kinds(stage.row(9n, table(2, 'u', 'a')))).toEqual([
      'column_dropped public.u',
    ]);
  });

  it('does not teach that a name has another owner: that has to be asked about', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'a'));
    stage.watch.announce(table(2, 't', 'a'));
    const other = table(2, 't', 'a');
    stage.watch.announce(other);
    stage.watch.passOver([other]);
    stage.watch.begin();
    expect(kinds(stage.row(2n, table(2, 't', 'a')))).toEqual([
      'table_replaced public.t',
    ]);
  });
});

describe('a transaction that is left out and was not applied', () => {
  /** A row of each table in such a transaction. */
  function leaveOut(stage: Stage, ...relations: Relation[]): void {
    for (const relation of relations) stage.watch.announce(relation);
    stage.watch.putOff(relations);
  }

  it('leaves its destructive changes to the next row of the table, which is not announced again', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'ab'), table(2, 'u', 'a'));
    const changed = table(1, 't', 'a');
    leaveOut(stage, changed);
    stage.watch.begin();
    expect(stage.watch.meet([table(2, 'u', 'a')], 3n)).toEqual([]);
    expect(kinds(stage.watch.meet([changed], 3n))).toEqual([
      'column_dropped public.t',
    ]);
  });

  it('leaves its additive changes, and tables that nobody knew, to be told and stored with that row', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'a'));
    const shapes = [table(1, 't', 'ab'), table(2, 'u', 'a')];
    leaveOut(stage, ...shapes);
    expect(stage.told).toEqual([]);
    stage.watch.begin();
    expect(stage.watch.end()).toEqual([]);
    expect(stage.watch.meet(shapes, 3n)).toEqual([]);
    expect(stage.told).toEqual(['public.t: added "b"']);
    expect(stage.watch.end()).toEqual(shapes);
    expect(stage.watch.waiting).toBe(false);
  });

  it('leaves nothing where it is as known, was announced anew, or is of a partition', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'a'), table(2, 'root', 'a'));
    leaveOut(stage, table(1, 't', 'a'));
    expect(stage.watch.waiting).toBe(false);
    leaveOut(stage, table(1, 't', ''));
    expect(stage.row(3n, table(1, 't', 'ab'))).toEqual([]);
    expect(stage.watch.waiting).toBe(false);
    const root = table(2, 'root', 'a');
    stage.watch.announce(root);
    stage.watch.announce(table(3, 'part', 'a'));
    stage.watch.putOff([root]);
    expect(stage.watch.waiting).toBe(false);
  });
});

describe('a stream that goes on with other shapes than a transaction had that was sent while it ran', () => {
  it('has a change told, stored or asked about with the next row, though the table is not announced again', () => {
    const stage = new Stage();
    const [more, less] = [table(1, 't', 'ab'), table(2, 'u', 'a')];
    stage.apply(1n, table(1, 't', 'a'), table(2, 'u', 'ab'));
    stage.watch.goOnWith([more, less]);
    expect(stage.told).toEqual([]);
    stage.watch.begin();
    expect(stage.watch.meet([more], 2n)).toEqual([]);
    expect(stage.told).toEqual(['public.t: added "b"']);
    expect(stage.watch.end()).toEqual([more]);
    expect(kinds(stage.watch.meet([less], 3n))).toEqual([
      'column_dropped public.u',
    ]);
  });

  it('has no change where the shape is as known, or nobody knew the table', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'ab'));
    stage.watch.goOnWith([table(1, 't', 'ab'), table(2, 'u', 'a')]);
    expect(stage.watch.waiting).toBe(false);
  });

  it('goes on with what is announced anew, if it is', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'ab'));
    stage.watch.goOnWith([table(1, 't', 'a')]);
    expect(stage.row(2n, table(1, 't', 'abc'))).toEqual([]);
    expect(stage.told).toEqual(['public.t: added "c"']);
    expect(stage.watch.waiting).toBe(false);
  });
});

describe('what is remembered', () => {
  it('is bounded: the table goes that was announced longest ago, and is removed from the checkpoint', () => {
    const history = new RelationHistory(3);
    const stage = new Stage(history);
    for (const oid of [1, 2, 3])
      stage.apply(BigInt(oid), table(oid, `t${oid}`, 'a'));
    history.stored(history.unstored);
    expect(history.unstored.size).toBe(0);
    stage.reconnect();
    stage.apply(4n, table(1, 't1', 'a'));
    stage.apply(5n, table(4, 't4', 'a'));
    expect([...history.unstored]).toEqual([
      [4, table(4, 't4', 'a')],
      [2, null],
    ]);
    // A change of a table that fell out is not noticed.
    expect(stage.row(6n, table(2, 't2', ''))).toEqual([]);
    expect(stage.row(6n, table(1, 't1', ''))).toHaveLength(1);
  });

  it('goes back with transactions that come again although they were durable', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'a'));
    stage.apply(2n, table(2, 'u', 'a'));
    stage.history.stored(stage.history.unstored);
    const stored = readRelations(
      writeRelations(new Map([[1, table(1, 't', 'a')]]), 0),
    );
    stage.apply(3n, table(1, 't', 'ab'));
    stage.history.comeAgain(2n);
    stage.history.resume(stored, 2n);
    stage.reconnect();
    expect(stage.history.unstored.size).toBe(0);
    expect(stage.apply(3n, table(1, 't', 'a'))).toEqual([]);
    expect(stage.row(4n, table(1, 't', ''))).toHaveLength(1);
  });

  it('goes back to nothing where no shapes are stored, and only for tables that changed', () => {
    const stage = new Stage();
    stage.apply(1n, table(1, 't', 'a'), table(2, 'u', 'a'));
    stage.apply(2n, table(1, 't', 'ab'));
    stage.history.comeAgain(1n);
    stage.reconnect();
    expect(stage.row(2n, table(1, 't', 'a'))).toEqual([]);
    expect(stage.row(2n, table(2, 'u', ''))).toHaveLength(1);
  });

  it('yields to what another process has stored since', () => {
    const stage = new Stage();
    stage.apply(5n, table(1, 't', 'a'));
    const stored = readRelations(
      writeRelations(new Map([[1, table(1, 't', 'ab')]]), 0),
    );
    stage.history.resume(stored, 5n);
    stage.reconnect();
    expect(stage.row(6n, table(1, 't', 'a'))).toEqual([]);
    stage.history.resume(stored, 6n);
    stage.reconnect();
    expect(stage.row(7n, table(1, 't', 'a'))).toHaveLength(1);
  });

  it('is gone when the checkpoint is', () => {
    const stage = new Stage();
    stage.apply(5n, table(1, 't', 'ab'));
    stage.history.clear();
    stage.reconnect();
    expect(stage.row(6n, table(1, 't', 'a'))).toEqual([]);
  });
});
