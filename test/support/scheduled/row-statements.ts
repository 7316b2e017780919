import { KEYS, type Place, type Statement } from './place.js';

/** Keys that rows are moved to begin here. */
const MOVED = KEYS / 2;

/** So much that the server sends it while the transaction runs. */
export function insertMany(place: Place): Statement | null {
  const { random } = place;
  return insert(
    place,
    60 + random.below(100),
    `repeat(md5(g::text), ${20 + random.below(25)})`,
  );
}

export function insertFew(place: Place): Statement | null {
  return insert(place, 1 + place.random.below(3), 'md5(g::text)');
}

/** Rows whose value is stored apart, so that an update may leave it out. */
export function insertWide(place: Place): Statement | null {
  return insert(
    place,
    1 + place.random.below(3),
    `(select string_agg(md5(g || ' ' || i), '') from generate_series(1, 400) i)`,
  );
}

function insert(place: Place, count: number, value: string): Statement | null {
  if (!place.share()) return null;
  const { first, last } = place.keys(count);
  return {
    sql: `insert into ${place.name}(id, mark, v) select g, ${place.mark}, ${value} from generate_series(${first}, ${last}) g`,
    traces: place.written,
  };
}

export function update(place: Place): Statement | null {
  if (!place.share()) return null;
  const { name, mark, random, written } = place;
  const value = random.below(3) === 0 ? ', v = upper(v)' : '';
  return {
    sql: `update ${name} set mark = ${mark}${value} where ${place.some(1 + random.below(4))}`,
    traces: written,
  };
}

/** Gives rows other keys. */
export function move(place: Place): Statement | null {
  if (!place.share()) return null;
  return {
    sql: `update ${place.name} set mark = ${place.mark}, id = id + ${MOVED} where ${place.some(5)} and id % ${KEYS} < ${MOVED}`,
    traces: place.written,
  };
}

export function remove(place: Place): Statement | null {
  if (!place.share()) return null;
  return {
    sql: `delete from ${place.name} where ${place.some(4)}`,
    traces: [{ of: `${place.name} removed`, rows: null }],
  };
}

/** Inserts some that are there already. */
export function put(place: Place): Statement | null {
  if (!place.share()) return null;
  const { name, mark, written } = place;
  const { first, last } = place.keys(3);
  return {
    sql: `insert into ${name}(id, mark, v)
      select id, ${mark}, 'put' from (select id from ${name} where ${place.some(3)} union select generate_series(${first}, ${last})) as keys
      on conflict (id) do update set mark = excluded.mark`,
    traces: written,
  };
}

/** Many subtransactions, of which every third one is rolled back. */
export function subtransactions(place: Place): Statement | null {
  if (!place.share()) return null;
  const { name, mark, random, written } = place;
  const count = 5 + random.below(90);
  const { first } = place.keys(count);
  const rows = count - Math.floor(count / 3);
  return {
    sql: `do $$ begin
      for i in 1..${count} loop begin
        insert into ${name}(id, mark, v) values (${first - 1} + i, ${mark}, repeat('s', ${random.below(900)}));
        if i % 3 = 0 then raise exception 'undone'; end if;
      exception when raise_exception then null; end; end loop;
    end $$`,
    traces: written.map((trace) => ({ ...trace, rows })),
  };
}

/** A message of the transaction. */
export function tell({ mark, random }: Place): Statement {
  const length = random.below(4) === 0 ? 4_000 : 0;
  return {
    sql: message(true, `'message ${mark}' || repeat('.', ${length})`),
    traces: [{ of: `message ${mark}`, rows: 1 }],
  };
}

/** A message that does not belong to the transaction in which it is written. */
export function tellOutside({ mark }: Place): Statement {
  return { sql: message(false, `'outside ${mark}'`), traces: [] };
}

function message(transactional: boolean, content: string): string {
  return `select pg_logical_emit_message(${transactional}, 'p', ${content})`;
}
