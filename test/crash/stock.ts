/** Tables that are there, with rows, before anything is copied. */
export const STOCK_TABLES = `
  create table stock(id int primary key, amount int, note text);
  alter table stock alter note set storage external;
  create table shelf(name text, place int, amount int, primary key (name, place))`;

const STOCK_ROWS = 24_000;
const SHELVES = 160;
const PLACES = 100;
/** One of so many notes is too large to be sent when it did not change. */
const NOTED = 25;

/** Rows for as many chunks as keep a copy going over some kills. */
export const FILL_STOCK = `
  insert into stock select g, g, ${noteOf('g')} from generate_series(1, ${STOCK_ROWS}) g;
  insert into shelf select 'shelf ' || s, p, s * p from generate_series(1, ${SHELVES}) s, generate_series(0, ${PLACES - 1}) p`;

/** Inserts, updates, deletes and key changes in both directions, all over the tables. Depends on `n` alone. */
export function stockStatements(n: number): readonly string[] {
  const put = scattered(n, 1);
  const changed = scattered(n, 2);
  const gone = scattered(n, 3);
  const [left, right] = [noted(scattered(n, 4)), scattered(n, 5)];
  const name = `'shelf ${1 + (n % SHELVES)}'`;
  const place = (n * 7) % PLACES;
  const next = (place + 1) % PLACES;
  return [
    `insert into stock values (${put}, ${n}, ${noteOf(`${put}`)})
       on conflict (id) do update set amount = excluded.amount, note = excluded.note`,
    `update stock set amount = ${n} where id in (${noted(changed)}, -${noted(changed)}, ${changed})`,
    `delete from stock where id in (${gone}, -${gone})`,
    `update stock set id = -id where id = ${left} and not exists (select from stock where id = -${left})`,
    `update stock set id = -id where id = -${right} and not exists (select from stock where id = ${right})`,
    n % 2 === 0
      ? `delete from shelf where name = ${name} and place = ${place}`
      : `insert into shelf values (${name}, ${place}, ${n}) on conflict (name, place) do update set amount = ${n}`,
    `update shelf set place = -1 - place where name = ${name} and place = ${next}
       and not exists (select from shelf where name = ${name} and place = -1 - ${next})`,
    `update shelf set amount = ${n} where name = ${name} and place = ${(place + 2) % PLACES}`,
  ];
}

/** A key of `stock`. */
function scattered(n: number, k: number): number {
  return 1 + ((n * 7_919 + k * 104_729) % STOCK_ROWS);
}

/** The key of a row nearby that has a note. */
function noted(id: number): number {
  return Math.max(NOTED, id - (id % NOTED));
}

function noteOf(id: string): string {
  return `case when ${id} % ${NOTED} = 0 then repeat('n', 3000) end`;
}
